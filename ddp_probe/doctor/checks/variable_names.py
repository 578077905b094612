"""No variable of torch, of a backend, of the launcher or of the probe is misspelt."""

import shlex
from typing import List

from ddp_probe.doctor.check import Answer, Check
from ddp_probe.doctor.host import Host
from ddp_probe.shared import settings
from ddp_probe.shared.accelerators import visible_variables
from ddp_probe.wording.text import Text, joined, say
from ddp_probe.wording.words import listed, quoted

CHECK = Check(
    id="DOC404",
    slug="variable-names",
    title="No variable of the probe, a backend or a launcher is misspelt or has an invalid value.",
    looks_at="The names of all variables that begin with DDP_PROBE, NCCL_, GLOO_ or TORCH_, or resemble a launcher's.",
    remedy="Correct the name: a variable that nothing reads has no effect.",
)


def check(host: Host) -> Answer:
    """Compare the names with those that are known."""
    own = settings.mistakes(host.environ)
    meant = {name: meant_by(name) for name in sorted(host.environ)}
    meant = {name: known for name, known in meant.items() if known and known not in host.environ}
    saw: List[Text] = [listed([name, mistake], by=": ") for name, mistake in own.items() if name not in meant]
    saw += [say("{name}: nothing reads it; {known} is read.", name=name, known=known) for name, known in meant.items()]
    if not saw:
        return CHECK.ok(say("Every name is known, or is not similar to a known one."))
    remedies = ["unset %s" % name for name in own if name not in meant]
    remedies += ["unset %s; export %s=%s" % (name, known, shlex.quote(host.environ[name])) for name, known in meant.items()]
    answer = CHECK.fail if own else CHECK.warn
    return answer(joined(saw), quoted("; ".join(remedies)))


# The names of variables that a distributed job reads, from the documentation of torch, NCCL and gloo, and from this package.

_LAUNCHER = """
RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE GROUP_RANK GROUP_WORLD_SIZE ROLE_RANK ROLE_WORLD_SIZE NODE_RANK NNODES MASTER_ADDR MASTER_PORT
"""
_TORCH = """
TORCH_DISTRIBUTED_DEBUG TORCH_CPP_LOG_LEVEL TORCH_SHOW_CPP_STACKTRACES TORCH_LOGS TORCH_COMPILE_DEBUG TORCH_FORCE_WEIGHTS_ONLY_LOAD
TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD TORCH_NCCL_ASYNC_ERROR_HANDLING TORCH_NCCL_BLOCKING_WAIT TORCH_NCCL_DESYNC_DEBUG
TORCH_NCCL_ENABLE_MONITORING TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC TORCH_NCCL_TRACE_BUFFER_SIZE TORCH_NCCL_DUMP_ON_TIMEOUT
TORCH_NCCL_DEBUG_INFO_TEMP_FILE TORCH_NCCL_AVOID_RECORD_STREAMS TORCH_NCCL_HIGH_PRIORITY TORCH_FR_BUFFER_SIZE TORCH_GLOO_LAZY_INIT
TORCH_HOME TORCH_EXTENSIONS_DIR TORCHELASTIC_ERROR_FILE TORCHELASTIC_RUN_ID TORCHELASTIC_MAX_RESTARTS TORCHELASTIC_RESTART_COUNT
TORCHELASTIC_USE_AGENT_STORE PYTORCH_CUDA_ALLOC_CONF PYTORCH_ALLOC_CONF USE_LIBUV
"""
_NCCL = """
NCCL_DEBUG NCCL_DEBUG_SUBSYS NCCL_DEBUG_FILE NCCL_SOCKET_IFNAME NCCL_SOCKET_FAMILY NCCL_SOCKET_NTHREADS NCCL_NSOCKS_PERTHREAD
NCCL_IB_DISABLE NCCL_IB_HCA NCCL_IB_TIMEOUT NCCL_IB_RETRY_CNT NCCL_IB_GID_INDEX NCCL_IB_SL NCCL_IB_TC NCCL_IB_CUDA_SUPPORT NCCL_NET
NCCL_NET_PLUGIN NCCL_NET_GDR_LEVEL NCCL_NET_GDR_READ NCCL_P2P_DISABLE NCCL_P2P_LEVEL NCCL_SHM_DISABLE NCCL_BUFFSIZE NCCL_NTHREADS
NCCL_MAX_NCHANNELS NCCL_MIN_NCHANNELS NCCL_ALGO NCCL_PROTO NCCL_TOPO_FILE NCCL_TOPO_DUMP_FILE NCCL_GRAPH_FILE NCCL_CROSS_NIC
NCCL_CUMEM_ENABLE NCCL_NVLS_ENABLE NCCL_LAUNCH_MODE NCCL_COMM_ID NCCL_CONF_FILE NCCL_COLLNET_ENABLE NCCL_ASYNC_ERROR_HANDLING
NCCL_BLOCKING_WAIT NCCL_DESYNC_DEBUG NCCL_IGNORE_CPU_AFFINITY NCCL_SET_THREAD_NAME NCCL_CHECKS_DISABLE NCCL_IB_QPS_PER_CONNECTION
NCCL_IB_ADAPTIVE_ROUTING NCCL_IB_PCI_RELAXED_ORDERING NCCL_DMABUF_ENABLE NCCL_TUNER_PLUGIN NCCL_PXN_DISABLE NCCL_RAS_ENABLE
"""
_GLOO = """
GLOO_SOCKET_IFNAME GLOO_DEVICE_TRANSPORT GLOO_DEVICE_TRANSPORT_TCP_TLS_PKEY GLOO_DEVICE_TRANSPORT_TCP_TLS_CERT
GLOO_DEVICE_TRANSPORT_TCP_TLS_CA_FILE
"""
_THREADS = " OMP_NUM_THREADS MKL_NUM_THREADS CUDA_LAUNCH_BLOCKING CUDA_DEVICE_ORDER"

ALL = tuple(
    dict.fromkeys([*(each.name for each in settings.SETTINGS), *(_LAUNCHER + _TORCH + _NCCL + _GLOO + _THREADS).split(), *visible_variables()])
)
# Names that mean something else and are close to one above.
OTHERS = frozenset("RANKS".split())
_SHORT = 12


def meant_by(name: str) -> str:
    """Return the known name that this one is a misspelling of; empty if it is known, or like none.

    Two letters may differ, one in a short name: NCCL_IB_TC is not taken for NCCL_IB_SL.
    """
    upper = name.upper()
    if name in ALL or name in OTHERS:
        return ""
    allowed = 1 if len(name) <= _SHORT else 2
    letters = set(upper)
    near = (known for known in ALL if abs(len(known) - len(name)) <= allowed and len(letters ^ set(known)) <= 2 * allowed)
    close = [(_distance(upper, known), known) for known in near]
    best = min(close, default=(allowed + 1, ""))
    return best[1] if best[0] <= allowed and min(len(name), len(best[1])) > 3 else ""


def _distance(name: str, other: str) -> int:
    """Return how many letters must be changed, added, left out or swapped with their neighbour."""
    rows = [list(range(len(other) + 1))]
    for i, a in enumerate(name, 1):
        row = [i]
        for j, b in enumerate(other, 1):
            best = min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and b == name[i - 2]:
                best = min(best, rows[-2][j - 2] + 1)
            row.append(best)
        rows.append(row)
    return rows[-1][-1]
