"""Ranks bring tensors of two data types to one collective."""

from typing import Iterator

from ddp_probe.diagnose.printed import by_text
from ddp_probe.diagnose.rule import Example, Finding, Printed, Rule
from ddp_probe.read.model import Run

_FINGERPRINT = r"OpType=(?P<op>\w+), TensorShape=\[(?P<shape>[^\]]*)\], TensorDtypes=(?P<one>\w+)"
_SAYS = "One collective gets tensors of two types: {one} and {two}."

RULE = Rule(
    id="DDP625",
    slug="collective-dtype-mismatch",
    cause="collective_dtype_mismatch",
    title="Ranks bring tensors of two data types to one collective.",
    symptom="A hang or wrong numbers with NCCL; 'Tensor dtypes: Float vs Long' with TORCH_DISTRIBUTED_DEBUG=DETAIL; EI0005 of an Ascend with parameter [dataType].",
    evidence="A text that names the two types.",
    remedy="Give the tensor one type on all ranks, also where a rank has nothing to send: torch.tensor(value, dtype=torch.float32, device=…); torch.tensor(0) is int64, torch.tensor(0.0) is float32.",
    needs=("process.end",),
    printed=(
        Printed(
            r"Detected mismatch between collectives on ranks\.[^\n]*?Collectives differ in the following aspects:(?![^\n]{0,400}(?:Op type|shapes):)[^\n]*?dtypes: ?(?P<one>[A-Z]\w*?) ?vs ?(?P<two>[A-Z]\w*)",
            says=_SAYS,
            ranks=False,
        ),
        Printed(
            r"Detected mismatch between collectives on ranks\.[^\n]{1,200}?"
            + _FINGERPRINT
            + r".{1,2000}?OpType=(?P=op), TensorShape=\[(?P=shape)\], TensorDtypes=(?!(?P=one)\b)(?P<two>\w+)",
            says=_SAYS,
            ranks=False,
        ),
        Printed(r"Invalid usage of tensors with different dtypes ?Found (?P<one>[\w.]+) and +(?P<two>[\w.]+)", says=_SAYS),
        Printed(
            r"ProcessGroupGloo::\w+: invalid tensor type at index[^\n]{1,80}dtype=(?P<one>[\w: ]{1,40})[^\n]{1,300}? got [^\n]{1,80}dtype=(?!(?P=one)[ (,])(?P<two>[\w:]{1,40})",
            says=_SAYS,
        ),
        Printed(
            r"output tensor must have the same type as input tensor|Tensors must have identical type|Input tensor must be the same type as the out"
        ),
        Printed(
            r"arguments for collective communication are inconsistent between ranks[^\n]*?parameter ?\[data_?[tT]ype\], local ?\[(?P<one>\w+)\], remote ?\[(?P<two>\w+)\]",
            says=_SAYS,
        ),
        Printed(
            r"Culprit rank (?P<rank>\d+); Error type: COLLECTIVE_DTYPE_MISMATCH",
            says="The Flight Recorder of rank {rank} has another data type there than the others.",
        ),
    ),
)

_ONE = "CollectiveFingerPrint(SequenceNumber=7, OpType=ALLREDUCE, TensorShape=[1], TensorDtypes=%s, TensorDeviceTypes=TensorOptions(dtype=float (default), device=cpu))"
EXAMPLES = (
    Example(
        "torch compares an all-reduce of floats with one of longs.",
        "RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running collective: %s, but Rank 0 is running collective: %s.Collectives differ in the following aspects: \t Tensor Tensor dtypes: Floatvs Long\n"
        % (_ONE % "Float", _ONE % "Long"),
    ),
    Example(
        "An older torch does not say in what they differ.",
        "RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running inconsistent collective: CollectiveFingerPrint(OpType=ALLREDUCE, TensorShape=[1], TensorDtypes=Float, TensorDeviceTypes=x), "
        "but Rank 0 is running collective: CollectiveFingerPrint(OpType=ALLREDUCE, TensorShape=[1], TensorDtypes=Long, TensorDeviceTypes=x)\n",
    ),
    Example(
        "HCCL compares the types.",
        "[rank2]: RuntimeError: EI0005: [PID: 77] 2026-11-20-06:32:27 The arguments for collective communication are inconsistent between ranks: tag [AllReduce_1], parameter [dataType], local [float], remote [int64]\n",
        ranks=(2,),
    ),
    Example(
        "The operations differ as well.",
        "RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running collective: %s, but Rank 0 is running collective: %s.Collectives differ in the following aspects: \t Op type: ALLREDUCEvs BROADCAST  Tensor Tensor dtypes: Floatvs Long\n"
        % (_ONE % "Float", (_ONE % "Long").replace("ALLREDUCE", "BROADCAST")),
        answer="clear",
    ),
)


def check(run: Run) -> Iterator[Finding]:
    """Take the words that name two types."""
    return by_text(RULE, run)
