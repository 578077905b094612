"""A parameter gets its gradient twice in one backward pass: DDP counts each parameter once."""

from ddp_probe.judging.rule import Printed, Rule

RULE = Rule(
    id="DDP657",
    slug="ready-twice",
    cause="ready_twice",
    title="A parameter of the model gets its gradient twice in one backward pass.",
    symptom="'Expected to mark a variable ready only once', most often with activation checkpointing.",
    evidence="The exception of DDP's reducer, and the name of the parameter if TORCH_DISTRIBUTED_DEBUG=DETAIL is set.",
    remedy=(
        "Give torch.utils.checkpoint.checkpoint use_reentrant=False (in transformers gradient_checkpointing_kwargs={'use_reentrant': False}). Or, if "
        "the graph is the same in each step, give DistributedDataParallel static_graph=True and leave find_unused_parameters out. "
        "Without checkpointing: call the model once per backward, through DDP and not through model.module, and use no parameter outside of forward."
    ),
    restart="no",  # The same graph is built in each step.
    needs=("process.end",),
    printed=(
        Printed(
            r"Expected to mark a variable ready only once\..*?Parameter at index \d+ with name (?P<name>[\w.]{1,200}?) has been marked as ready "
            r"twice",
            says="{name} gets its gradient twice in one backward pass: reentrant checkpointing, or two uses of it.",
            ranks=False,
        ),
        Printed(
            r"Expected to mark a variable ready only once|has been marked as ready twice",
            says="A parameter gets its gradient twice in one backward pass: reentrant checkpointing, or two uses of it.",
            ranks=False,
        ),
    ),
)
