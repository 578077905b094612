"""A fault in torch: one of its assertions fails, or one of its debugging aids crashes."""

from ddp_probe.judging.rule import Printed, Rule

RULE = Rule(
    id="DDP813",
    slug="torch-fault",
    cause="torch_fault",
    title="An assertion inside torch fails: a bug in torch, or a use that torch does not check for.",
    symptom="'INTERNAL ASSERT FAILED at …, please report a bug to PyTorch', or a segmentation fault with TORCH_DISTRIBUTED_DEBUG=DETAIL.",
    evidence="torch's own message. It does not say what led to it.",
    remedy="Search torch's issues for the text of the assertion, and try the latest torch. Until then, leave out what commonly causes it: "
    "TORCH_DISTRIBUTED_DEBUG=DETAIL, "
    "static_graph, torch.compile, empty batches, a model whose parameters change after the wrap.",
    restart="unknown",  # The assertion does not say what has led to it.
    needs=("process.end",),
    printed=(
        Printed(
            r"(?P<what>[^\n\"]{0,120}?)\s{0,2}INTERNAL ASSERT FAILED at \"?(?P<place>[^\s\":,]{1,200})",
            unless=(
                r"NVML|num_gpus|CUDAContext|CUDAFunctions|device_count|rebuilt_param_indices|CUDA error|out of memory|PytorchStreamReader"
                r"|inline_container"
            ),
            says="An assertion inside torch fails, in {place}.",
        ),
        Printed(
            r"Error: [^\n]{0,300}[Pp]lease (?:report|file) (?:a bug|an issue) (?:to|with|at) (?:PyTorch|pytorch|https://github\.com/pytorch)",
            unless=r"NVML|INTERNAL ASSERT|CUDA error",
            says="torch reports an internal fault.",
        ),
        Printed(
            r"Segmentation fault|Signal 11 \(SIGSEGV\)|exitcode\s{0,20}: -11\b",
            beside=r"TORCH_DISTRIBUTED_DEBUG['\"]?\]?\s{0,4}[=:]\s{0,4}['\"]?DETAIL|ProcessGroupWrapper",
            says="A process crashes under TORCH_DISTRIBUTED_DEBUG=DETAIL, as torch's comparison of the collectives can do; run without it.",
        ),
        Printed(
            r"use_libuv was requested but PyTorch was buil[dt] without libuv",
            says="This build of torch asks for libuv, which it does not have (Windows, torch 2.4 to 2.6): set USE_LIBUV=0.",
        ),
        Printed(
            r"If capturable=False, state_steps should not be CUDA tensors",
            says=(
                "torch 1.12.0's Adam refuses a state that it loaded itself: use 1.12.1, or set capturable=True in the optimizer's groups after "
                "loading."
            ),
        ),
        Printed(
            r"lazy wrapper should be called at most once",
            says="Several threads use torch.linalg for the first time at once: call it once in the main thread before they start.",
        ),
    ),
    yields_to=("framework-version-incompatible",),
)
