#!/usr/bin/env bash
# Does what tools/dist_train.sh of an OpenMMLab repository does: CONFIG and the number of cards, then further arguments of train.py.
here=$(dirname "$0")
PYTHONPATH="$here/..":$PYTHONPATH exec python -m torch.distributed.launch \
    --nnodes="${NNODES:-1}" --node_rank="${NODE_RANK:-0}" --master_addr="${MASTER_ADDR:-127.0.0.1}" \
    --nproc_per_node="$2" --master_port="${PORT:-29500}" \
    "$here/train.py" "$1" --launcher pytorch "${@:3}"
