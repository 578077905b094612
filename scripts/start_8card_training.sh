#!/usr/bin/env bash
# A launch to copy and adapt: one machine, one process per card, under the probe.
#
# Once, before:        python -m ddp_probe install      puts the activator in place for this Python
# Every run:           DDP_PROBE=1 torchrun ...         what this script does
# Afterwards:          python -m ddp_probe report       which rank, which line, why, what to do
# When all is well:    python -m ddp_probe uninstall    takes the activator out again
set -euo pipefail

usage() {
    cat <<'TEXT'
usage: start_8card_training.sh TRAIN.py [CONFIG.py] [arguments ...]

Starts TRAIN.py over NPROC processes on this machine, with the probe on.

environment:
  NPROC             processes, one per card (default: 8)
  OMP_NUM_THREADS   CPU threads of each process (default: 4)
  DDP_PROBE         0 turns the probe off (default: 1)
  DDP_PROBE_DIR     folder that collects the runs (default: ddp_probe_runs)

example:
  NPROC=8 ./start_8card_training.sh train.py config.py --launcher pytorch
TEXT
}

case ${1:-} in
    -h | --help)
        usage
        exit 0
        ;;
    "")
        usage >&2
        exit 2
        ;;
esac

# Eight processes that each take every core slow each other down: cores divided by NPROC is a good start.
export OMP_NUM_THREADS="${OMP_NUM_THREADS:-4}"
export DDP_PROBE="${DDP_PROBE:-1}"

# RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT come from torchrun. Values left over from an earlier
# attempt in the same shell mislead what is started without it.
unset RANK LOCAL_RANK WORLD_SIZE MASTER_ADDR MASTER_PORT

# Enflame GCU cards, as examples; the vendor's manual for the installed release has the last word.
# export ECCL_BACKEND=eccl        # the collective library that the processes talk through
# export ECCL_DEVICE_TYPE=gcu     # the kind of card it moves data between
# The program has to agree: init_process_group(backend="eccl") and a device named gcu:LOCAL_RANK. With MMEngine that is
# env_cfg = dict(dist_cfg=dict(backend="eccl")) in the config, and --launcher pytorch on the command line: with
# launcher "none" every process trains alone.

# --standalone chooses a free port on this machine: two launches side by side do not meet.
exec torchrun --standalone --nnodes=1 --nproc_per_node="${NPROC:-8}" "$@"
