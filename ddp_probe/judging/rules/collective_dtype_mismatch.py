"""Ranks pass tensors of different data types to the same collective."""

from ddp_probe.judging.rule import Printed, Rule

_FINGERPRINT = r"OpType=(?P<op>\w+), TensorShape=\[(?P<shape>[^\]]*)\], TensorDtypes=(?P<one>\w+)"
_SAYS = "One collective gets tensors of two types: {one} and {two}."

RULE = Rule(
    id="DDP625",
    slug="collective-dtype-mismatch",
    cause="collective_dtype_mismatch",
    title="Ranks pass tensors of different data types to the same collective.",
    symptom=(
        "A hang or wrong numbers with NCCL; 'Tensor dtypes: Float vs Long' with TORCH_DISTRIBUTED_DEBUG=DETAIL; EI0005 on Ascend, "
        "with parameter [dataType]."
    ),
    evidence="A message that names the two types.",
    remedy=(
        "Give the tensor the same type on all ranks, even if a rank has nothing to send: torch.tensor(value, dtype=torch.float32, device=…); "
        "torch.tensor(0) is int64, torch.tensor(0.0) is float32."
    ),
    restart="no",  # The types are chosen in the code.
    needs=("process.end",),
    printed=(
        Printed(
            (
                r"Detected mismatch between collectives on ranks\.[^\n]*?Collectives differ in the following aspects:(?![^\n]{0,400}(?:Op type"
                r"|shapes):)[^\n]*?dtypes: ?(?P<one>[A-Z]\w*?) ?vs ?(?P<two>[A-Z]\w*)"
            ),
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
            (
                r"ProcessGroupGloo::\w+: invalid tensor type at index[^\n]{1,80}dtype=(?P<one>[\w: ]{1,40})[^\n]{1,300}? got [^\n]{1,80}dtype=(?!"
                r"(?P=one)[ (,])(?P<two>[\w:]{1,40})"
            ),
            says=_SAYS,
        ),
        Printed(
            r"output tensor must have the same type as input tensor|Tensors must have identical type|Input tensor must be the same type as the out"
        ),
        Printed(
            (
                r"arguments for collective communication are inconsistent between ranks[^\n]*?parameter ?\[?data_?[tT]ype\]?, local(?: end)? ?"
                r"\[?(?P<one>\w+)\]?, remote(?: end)? ?\[?(?P<two>\w+)"
            ),
            says=_SAYS,
        ),
        Printed(
            r"Culprit rank (?P<rank>\d+); Error type: COLLECTIVE_DTYPE_MISMATCH",
            says="The Flight Recorder of rank {rank} shows a different data type from the others.",
        ),
    ),
)
