#!/usr/bin/env bash
# Runs a job in a control group of its own with 1.5 GiB of memory, of either version; exits with 77 if this user may not make one.
set -euo pipefail
limit() {
    mkdir "$1/ddp_probe_$$" 2>/dev/null || return 1
    group="$1/ddp_probe_$$"
    { echo $((3 << 29)) >"$group/$2"; } 2>/dev/null || { rmdir "$group"; return 1; }
}
one=$(sed -n 's/^[0-9]*:memory:/\/sys\/fs\/cgroup\/memory/p' /proc/self/cgroup)
two=$(sed -n 's/^0::/\/sys\/fs\/cgroup/p' /proc/self/cgroup)
limit "${one:-/nowhere}" memory.limit_in_bytes || limit "${two:-/nowhere}" memory.max || { echo "no control group can be made"; exit 77; }
status=0
(echo "$BASHPID" >"$group/cgroup.procs" && exec "$@") || status=$?
for _ in $(seq 200); do rmdir "$group" 2>/dev/null && break || sleep 0.1; done
exit "$status"
