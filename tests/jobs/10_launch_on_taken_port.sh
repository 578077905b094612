#!/usr/bin/env bash
# A process of yesterday still holds the port that today's torchrun is given. The launcher itself fails; no rank ever starts.
# Called as: 10_launch_on_taken_port.sh PORT PROGRAM
python -m http.server "$1" >/dev/null 2>&1 &
stale=$!
until (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; do sleep 0.1; done
torchrun --nproc_per_node=2 --master_addr=127.0.0.1 --master_port="$1" "$2"
status=$?
kill "$stale"
wait "$stale" 2>/dev/null
exit "$status"
