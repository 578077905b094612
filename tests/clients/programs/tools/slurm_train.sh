#!/usr/bin/env bash
# Does what tools/slurm_train.sh of an OpenMMLab repository does: partition, job name, CONFIG and work folder, then further arguments of train.py.
here=$(dirname "$0")
PYTHONPATH="$here/..":$PYTHONPATH exec srun -p "$1" --job-name="$2" --gres="gpu:${GPUS_PER_NODE:-8}" --ntasks="${GPUS:-8}" \
    --ntasks-per-node="${GPUS_PER_NODE:-8}" --cpus-per-task="${CPUS_PER_TASK:-5}" --kill-on-bad-exit=1 \
    python -u tools/train.py "$3" --work-dir="$4" --launcher=slurm "${@:5}"
