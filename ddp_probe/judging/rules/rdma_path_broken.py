"""The InfiniBand, RoCE or EFA path between two hosts does not work."""

from ddp_probe.judging.rule import Printed, Rule

RULE = Rule(
    id="DDP647",
    slug="rdma-path-broken",
    cause="rdma_path_broken",
    title="The InfiniBand or RoCE path between two hosts does not work.",
    symptom="'Got completion … with error 12', 'ibv_reg_mr failed', 'ibv_modify_qp failed'; the other ranks lose the connection or time out.",
    evidence=(
        "NCCL's messages about its verbs. Error 12 means that a peer does not answer; 'Cannot allocate memory' is the limit of locked memory "
        "(ulimit -l); error 5 follows from the end of the peer."
    ),
    remedy=(
        "Start once with NCCL_IB_DISABLE=1: if that runs, it is this path. On RoCE set NCCL_IB_GID_INDEX to the row of v2 with an IPv4 address "
        "(show_gids), name the cards in NCCL_IB_HCA, raise the limit of locked memory (ulimit -l unlimited, --ulimit memlock=-1), and test "
        "with ib_write_bw."
    ),
    restart="unknown",  # A setting of the job, or a link between two hosts.
    needs=("process.end",),
    printed=(
        Printed(
            r"ibv_(?:reg_mr\w*|create_\w+)\b[^\n]*failed[^\n]*Cannot allocate memory|NET/OFI Unable to register memory[^\n]*Cannot allocate memory",
            says="The network card may not lock the memory that NCCL gives it: the limit is too low (ulimit -l).",
        ),
        Printed(
            r"NET/IB : (?:\S+ )?Got (?:fatal )?async (?:fatal )?event : (?P<why>port error|local catastrophic error|QP fatal error)",
            beside=r"nccl(?:Remote|System)Error|unhandled system error|[Ww]atchdog caught|with (?:error|status=?) ?\d",
            says="A network card reports: {why}.",
        ),
        Printed(
            r"EJ0002\)?:[^\n]*network port is down",
            says="The network port of an NPU is down: hccn_tool -i <card> -link -g shows which, on each host.",
            ranks=False,
        ),
        Printed(
            r"ibv_(?:modify_qp|reg_mr\w*|create_\w+|open_device)\b[^\n]*failed|Got completion[^\n]* with (?:error|status=?) ?(?:12\b"
            r"|IBV_WC_RETRY_EXC_ERR)",
            says="The InfiniBand or RoCE path between two hosts does not work (NCCL_IB_HCA, NCCL_IB_GID_INDEX).",
        ),
    ),
)
