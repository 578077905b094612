"""FSDP is to put parameters of different types into one flat parameter."""

from ddp_probe.judging.rule import Printed, Rule

RULE = Rule(
    id="DDP122",
    slug="shard-parameters-not-uniform",
    cause="shard_parameters_not_uniform",
    title="FSDP is given parameters of different types, or frozen and trained ones, to hold as one flat parameter.",
    symptom="'Must flatten tensors with uniform dtype but got torch.bfloat16 and torch.float32', when FSDP wraps the model.",
    evidence=(
        "FSDP's own message, with both types. Often the base model is loaded in bfloat16, and adapters, norms or a value head that are added later "
        "are float32; or the ranks differ because only rank 0 loads the weights."
    ),
    remedy=(
        "Convert all parameters to one type before the wrap: model.to(torch.bfloat16), after the last adapter was added; for QLoRA also "
        "bnb_4bit_quant_storage of the same type. For frozen parameters beside trained ones set use_orig_params=True, or wrap them separately "
        "with auto_wrap_policy."
    ),
    restart="no",  # The model is built with the same types again.
    needs=("process.end",),
    printed=(
        Printed(
            r"(?:Must flatten tensors with|`?FlatParameter`? requires) (?:the same|uniform) `?dtype`? but got (?P<one>torch\.\w+) and "
            r"(?P<two>torch\.\w+)",
            says="One FSDP unit has parameters of {one} and of {two}.",
            ranks=False,
        ),
        Printed(
            r"(?:Must flatten tensors with|`?FlatParameter`? requires) (?:the same|uniform) `?requires_grad`?",
            says="One FSDP unit has frozen parameters and trained ones, and use_orig_params is False.",
            ranks=False,
        ),
        Printed(
            r"FSDP expects uniform original parameter dtype but got \{?(?P<types>[^}\n]{1,120})",
            says="One group of fully_shard has parameters of {types}.",
            ranks=False,
        ),
    ),
)
