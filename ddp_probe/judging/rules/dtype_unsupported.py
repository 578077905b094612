"""The device has no kernel for the data type that the job uses on it."""

from ddp_probe.judging.rule import Printed, Rule

RULE = Rule(
    id="DDP215",
    slug="dtype-unsupported",
    cause="dtype_unsupported_on_device",
    title="The device does not support the data type that the job uses.",
    symptom="'\"addmm_impl_cpu_\" not implemented for 'Half'', 'does not support bfloat16'.",
    evidence="The exception names the operator and the type. If the communication backend lacks the data type, see operation-unsupported.",
    remedy=(
        "Use float32 there (model.float(), no fp16 or bf16 in the configuration, OptimWrapper in place of AmpOptimWrapper), "
        "or use a device or a torch that supports the type: CPU builds of torch 2.x multiply float16."
    ),
    restart="no",  # The configuration asks for that type again.
    printed=(
        Printed(r"unsupported scalarType (?P<kind>\w+) on (?P<device>\w+)", says="{device} does not support the type {kind}."),
        Printed(
            r"Getting size for given data type is not supported: (?P<number>\d+)",
            says="The communication library does not send tensors of this data type (number {number} in torch's list: 0 uint8, 11 bool).",
            ranks=False,
        ),
        Printed(
            r"\"?'?(?P<operator>[\w:]+)\"?'? not implemented for '(?P<dtype>Half|BFloat16|ComplexHalf|Float8_\w+)'",
            says="{operator} is not implemented for {dtype} on this device.",
        ),
        Printed(
            r"Type (?P<dtype>fp16|bf16|fp8) is not supported on your device|[Rr]equired aspect (?P<aspect>fp\d+) is not supported",
            says="The device does not support the data type.",
        ),
        Printed(
            (
                r"(?:[Dd]evice|GPU|setup|hardware|platform)[^\n]{0,40} (?:does not|doesn't|do not) support (?P<dtype>bf16|bfloat16|fp16|float16|fp8"
                r"|float64)"
            ),
            says="The device does not support {dtype}.",
        ),
        Printed(
            (
                r"(?P<dtype>[Bb]float16|bf16|fp8|FP8) (?:is )?(?:only )?(?:is )?supported (?:only )?on (?:\w+ )?(?:GPUs?"
                r"|devices?) with compute capability"
            ),
            says="The cards are too old for {dtype}.",
        ),
        Printed(
            (
                r"(?P<dtype>fp16|bf16|fp8) mixed precision requires|FP16 (?:Mixed precision )?(?:training"
                r"|.{0,40}half precision)[^\n]{0,120}can only be used on (?:CUDA|GPU)"
            ),
            says="The job asks for mixed precision on a device that does not support it.",
        ),
        Printed(r"AmpOptimizerWrapper`* is only available training on", says="AmpOptimWrapper does not support this device."),
        Printed(
            (
                r"not implemented for DT_(?P<dtype>BFLOAT16|FLOAT16|DOUBLE|COMPLEX\w+)|Cannot convert a MPS Tensor to float64"
                r"|BFloat16 is not supported on MPS"
            ),
            says="The device has no kernel for this data type.",
        ),
    ),
)
