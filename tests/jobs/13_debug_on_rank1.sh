#!/usr/bin/env bash
# Starts a rank; on rank 1 with an environment of its own, as a host with another login script has it.
set -euo pipefail
if [[ $RANK == 1 ]]; then
    export TORCH_DISTRIBUTED_DEBUG=DETAIL
fi
exec "$@"
