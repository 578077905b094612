#!/usr/bin/env bash
# Starts a rank; on rank 1 with a second mmengine, an older one by its number, first on the path, as a host that missed an update has it.
set -euo pipefail
if [[ $RANK == 1 ]]; then
    mkdir -p second_site
    cp -r "$(python -c 'from importlib.util import find_spec; print(find_spec("mmengine").submodule_search_locations[0])')" second_site/
    sed -i "s/^__version__ = .*/__version__ = '0.8.4'/" second_site/mmengine/version.py
    export PYTHONPATH="$PWD/second_site${PYTHONPATH:+:$PYTHONPATH}"
fi
exec "$@"
