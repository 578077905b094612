"""The communication backend lacks the collective, the reduction or the data type that the job asks for."""

from ddp_probe.judging.rule import Printed, Rule
from ddp_probe.judging.vendor_words import BACKENDS, COMMUNICATION

_BACKEND = r"(?P<backend>[Gg]loo|NCCL|nccl|MPI|mpi|UCC|ucc|oneCCL|[Ff]lag[Cc][Xx]|%s)" % BACKENDS

RULE = Rule(
    id="DDP225",
    slug="operation-unsupported",
    cause="op_unsupported_by_backend",
    title="The communication backend does not support an operation or a data type that the job uses.",
    symptom=(
        "'Cannot use ReduceOp.AVG with Gloo', 'ProcessGroupGloo does not support reduce_scatter', 'average operation is not supported', "
        "ERR02007 or EI0003 on Ascend, 'Unsupported data type for HCCL process group'."
    ),
    evidence="The exception names the backend, and the operation or the type.",
    remedy="Use an operation that the backend supports: for AVG, SUM and a division by the number of ranks; for reduce_scatter, all_reduce and a "
    "slice; for gather, all_gather; for a tensor of bool, bfloat16 or float64, one of float32 or int32. Or use a backend that supports it, "
    "or a later version of the vendor's plugin.",
    restart="no",  # The backend supports no more the next time.
    needs=("process.end",),
    printed=(
        Printed(
            r"ProcessGroupUCC[^\n]{0,120}failed to init collective, error code -1: Operation is not supported",
            says="UCC, as it was built, does not have this collective for these tensors.",
        ),
        Printed(
            r"Cannot use ReduceOp\.(?P<op>\w+) with (?P<why>boolean inputs|non-integral dtype)",
            says="The backend does not reduce with {op} over {why}.",
        ),
        Printed(r"Cannot use ReduceOp\.?(?P<op>\w+) with (?P<backend>\w+)", says="{backend} does not reduce with {op}."),
        Printed(
            r"Unsupported (?:ReduceOp|reduce op\w*|reduction) for (?P<backend>\w+)|Unhandled ReduceOp|ValueError: Invalid reduce op\b",
            says="The backend lacks the reduction that the job asks for.",
        ),
        Printed(
            r"(?:RedOp|ReduceOp|PREMUL_SUM|PreMulSum|premul_sum)[^\n]{0,60} (?:requires NCCL|is not supported|not supported)",
            says="The backend lacks the reduction that the job asks for.",
        ),
        Printed(
            r"\b(?P<op>average|product|min|max|sum|avg|AVG|PROD) (?:operation|reduction) is not supported",
            says="The backend does not reduce with {op} here.",
        ),
        Printed(r"ProcessGroup ?(?P<backend>(?!Wrapper)[A-Za-z]+?) ?does not support (?P<op>\w+)", says="{backend} has no {op}."),
        Printed(r"Error: (?:\[Rank \d+\] )?[Bb]ackend (?P<backend>\w+?) ?does not support (?P<op>\w+)", says="{backend} has no {op}."),
        Printed(
            r"Error: (?:[Tt]he )?" + _BACKEND + r"(?: backend)? (?:does not|doesn't|do not) support (?P<op>\w+)",
            unless=r"(?:bf16|bfloat16|[Ff]loat|[Dd]ouble|dtype|data ?type)",
            says="{backend} does not support {op}.",
        ),
        Printed(
            (
                r"Error: [^\n]{0,200} is only (?:supported|implemented|available) (?:for|by|with|in|on) (?:the )?(?P<need>NCCL|nccl|GLOO|gloo|Gloo"
                r"|MPI|mpi) backend"
            ),
            says="The job's backend lacks the operation: only {need} has it.",
        ),
        Printed(
            r"Error: [^\n]{0,200}(?:reduce ?op\w*|reduction|[Rr]educeOp)[^\n]{0,60}not supported (?:by|in|on|for|with) (?:the )?" + _BACKEND,
            says="{backend} lacks the reduction that the job asks for.",
        ),
        Printed(r"ERR02007 DIST (?:feature )?not support\w*", unless=r"[Dd]ata ?type|dtype", says="HCCL lacks an operation that the job asks for."),
        Printed(
            r"EI0003\)?:[^\n]*(?:[Rr]educe ?[Oo]p|optype|opType|parameter \[op\])", says="HCCL does not support the reduction that the job asks for."
        ),
        Printed(
            r"Input tensor data type i[sn] not supported for (?P<backend>\w+) process group: (?P<dtype>\w+)",
            says="{backend} does not exchange tensors of type {dtype}.",
        ),
        Printed(
            r"Unsupported (?:data ?type|dtype|scalar type) (?:for|in) (?:the )?" + _BACKEND, says="{backend} does not exchange tensors of this type."
        ),
        Printed(
            r"Unconvertible (?:NCCL|%s) type|Unsupported Float8 type for NCCL|RuntimeError: Invalid scalar type\b" % COMMUNICATION,
            says="The backend does not exchange tensors of this type.",
        ),
        Printed(
            (
                r"Error: [^\n]{0,200}?(?P<dtype>\b(?:torch\.)?(?:u?int\d+|bool|b?float\d*|bf16|fp16|fp64|double|half|complex\d*|[Bb][Ff]loat16|Bool"
                r"|Long|Double|Half))\b[^\n]{0,40} not supported (?:by|in|on|for|with) (?:the )?"
            )
            + _BACKEND,
            says="{backend} does not exchange tensors of type {dtype}.",
        ),
        Printed(r"EI0003\)?:[^\n]*(?:data ?[tT]ype|dtype)", says="HCCL does not support the data type that the job asks for."),
        Printed(
            r"Error: collective [^\n]{0,60} is not supported during (?P<when>[^\n]{1,80})",
            says="The backend does not support the collective during {when}.",
        ),
        Printed(
            r"\bECCL error in[^\n]*[Ii]nvalid ?[Aa]rgument|\becclInvalidArgument\b",
            says="ECCL refuses an argument of the collective: most often its data type, as ECCL 3.6 has no all_reduce for float64 and int64.",
            next="Print the dtype and the device of the tensor before the collective, and try it with float32 or int32.",
        ),
        Printed(r"HCCL only supports? (?P<only>[^\n.]{1,80})", unless=r"[Ww]arning", says="HCCL supports only {only}."),
    ),
    yields_to=("backend-does-not-fit-device",),
)
