"""A layer of a model that ZeRO-3 or FSDP has divided is called past the wrapper: its parameters are not together then."""

from ddp_probe.judging.rule import Printed, Rule

_DIVIDED = r"[Dd]eep[Ss]peed|[Zz]e[Rr][Oo][-_ ]?(?:stage[-_ ]?)?3|stage3|ds_shape|[Ff][Ss][Dd][Pp]|fully_shard|tensor\(\[\], device="

RULE = Rule(
    id="DDP118",
    slug="sharded-parameter-used-outside",
    cause="sharded_parameter_used_outside",
    title="A parameter that is divided among the ranks is used while its parts are not together.",
    symptom=(
        "\"'weight' must be 2-D\", 'weight of size [0]', 'tensors must be 2-D' or 'out of bounds for storage of size 0' with ZeRO-3 or FSDP, "
        "while the same model runs on one card."
    ),
    evidence=(
        "With ZeRO-3 and FSDP a rank has a part of each parameter, of shape [0] or one dimension, except in the forward and backward of the "
        "wrapped module. The traceback ends in a layer that was called without it: a second model that was never wrapped, a submodule called "
        "directly, generate on the inner module, or an optimizer step without deepspeed.initialize."
    ),
    remedy=(
        "Call the object that the wrapper returned, and not model.module or one of its layers. Give every model that was built under ZeRO-3 to "
        "deepspeed.initialize or accelerator.prepare, also one that is only evaluated; or build it outside of ZeRO-3. To read or change a "
        "parameter, gather it: with deepspeed.zero.GatheredParameters(params), or FSDP.summon_full_params(model)."
    ),
    restart="no",  # The same line uses the parameter again.
    needs=("process.end",),
    printed=(
        Printed(
            r"'weight' must be 2-D|weight should have at least three dimensions|RuntimeError: tensors must be 2-D",
            beside=_DIVIDED,
            says="A layer is called while its weight is divided among the ranks.",
            ranks=False,
        ),
        Printed(
            r"weight of size \[0\]|mat2 must be a matrix, got 1-D tensor|cannot be multiplied \(\d{1,9}x\d{1,9} and 0x0\)"
            r"|must match the size of tensor b \(0\)",
            beside=_DIVIDED,
            says="A layer is called while its weight is divided among the ranks.",
            ranks=False,
        ),
        Printed(
            r"setStorage: sizes [^\n]{1,300} out of bounds for storage of size 0\b",
            says="A parameter is used whose storage is free: it is divided among the ranks.",
            ranks=False,
        ),
        Printed(
            r"Non-root FSDP instance's `?_is_root`? should not have been set yet",
            says="A module inside the FSDP model was called, or its state taken, before the outermost one ran: FSDP took it for the root.",
            ranks=False,
        ),
        Printed(
            r"RuntimeError: 'weight' must be 2-D",
            says="An embedding's weight is not a matrix: it is most often one that ZeRO-3 or FSDP has divided among the ranks.",
            next=(
                "Print the weight's shape before the call; [0] is a parameter of ZeRO-3, and the settings of accelerate or DeepSpeed name the stage."
            ),
            ranks=False,
        ),
    ),
    yields_to=("parameter-left-on-meta",),
)
