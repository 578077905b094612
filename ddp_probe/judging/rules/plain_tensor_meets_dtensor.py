"""One operation gets a parameter that is divided among the ranks (a DTensor), and a tensor that is not."""

from ddp_probe.judging.rule import Printed, Rule

RULE = Rule(
    id="DDP120",
    slug="plain-tensor-meets-dtensor",
    cause="plain_tensor_meets_dtensor",
    title="One operation gets a tensor that is divided among the ranks (a DTensor), and one that is not.",
    symptom="'got mixed torch.Tensor and DTensor, need to convert all torch.Tensor to DTensor', with FSDP2 or tensor parallelism.",
    evidence=(
        "torch's own message names the operation. With FSDP2 a parameter is a DTensor except in the forward and backward of the module that "
        "fully_shard was given; the traceback shows which call bypassed it."
    ),
    remedy=(
        "With fully_shard, call the sharded module itself: only its forward gathers the parameters. For another method, "
        "torch.distributed.fsdp.register_fsdp_forward_method(module, 'name'); for a parameter used outside of its module, shard the parent that uses "
        "it. With tensor parallelism, give the layer a plan in parallelize_module, or make the other tensor a DTensor: distribute_tensor(tensor, "
        "mesh, [Replicate()]). In an optimizer or in clipping, do not mix both kinds in one group."
    ),
    restart="no",  # The same operation meets both kinds again.
    needs=("process.end",),
    printed=(
        Printed(
            r"(?P<op>[\w.]{1,80}): got mixed torch\.Tensor and DTensor",
            says="{op} gets a tensor that is divided among the ranks and one that is not.",
            ranks=False,
        ),
        Printed(r"got mixed torch\.Tensor and DTensor", ranks=False),
        Printed(
            r"found no DeviceMesh from dtensor args for (?P<op>[\w.]{1,80})",
            says="{op} is given a tensor that is divided among the ranks (a DTensor), but accepts only plain tensors.",
            ranks=False,
        ),
    ),
)
