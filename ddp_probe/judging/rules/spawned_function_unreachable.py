"""A process that spawn starts imports the program again, and has to find there the function that it is to run."""

from ddp_probe.judging.rule import Printed, Rule

_SPAWN = r"multiprocessing/(?:spawn|reduction|popen_spawn_posix|popen_forkserver)|ForkingPickler|spawn_main|start_processes|mp\.spawn\("
_SAVE = r"torch/serialization\.py"  # A checkpoint that cannot be pickled.

RULE = Rule(
    id="DDP423",
    slug="spawned-function-unreachable",
    cause="spawned_function_unreachable",
    title="A process started by spawn cannot load the function that it should run.",
    symptom=(
        "'Can't pickle local object', 'Can't get attribute … on <module '__main__'', or 'has finished its bootstrapping phase', "
        "before any rank exists."
    ),
    evidence="The exception of multiprocessing while it starts the ranks. The same words in torch.save are about the object that is saved.",
    remedy=(
        "Define the function that the ranks run at the top level of a file, not in another function and not as a lambda, and start the ranks "
        "below if __name__ == '__main__': in that file, because each of them imports it again. In a notebook, write the function to a .py file "
        "and import it, or start the ranks by fork: accelerate.notebook_launcher, or Trainer(strategy='ddp_notebook')."
    ),
    restart="no",  # The function stands where it stands.
    needs=("process.end",),
    printed=(
        Printed(
            r"Can't (?:pickle|get) local object '(?:[\w.<>]+\.)?(?P<name>[\w<>]+)'",
            beside=_SPAWN,
            unless=_SAVE,
            says="The function {name} is defined inside another one: a process that spawn starts cannot find it.",
            ranks=False,
        ),
        Printed(
            r"Can't pickle (?:<function )?(?P<name>[\w.<>]+)[^\n]{0,60}: attribute lookup [\w.<>]+ on __main__ failed",
            beside=_SPAWN,
            unless=_SAVE,
            says="A process that spawn starts cannot find {name} in the program.",
            ranks=False,
        ),
        Printed(
            r"Can't get attribute '(?P<name>\w+)' on <module '__main__' \(built-in\)>",
            beside=_SPAWN,
            unless=r"serialization\.py",
            says="The function {name} is in no file that a process that spawn starts could import.",
            ranks=False,
        ),
        Printed(
            r"start a new process before the\s+current process has finished its bootstrapping phase",
            says="Each process that spawn starts runs the program from its top, and would start ranks itself: if __name__ == '__main__': is missing.",
            ranks=False,
        ),
        Printed(
            r"`?Trainer\(strategy=(?P<name>'\w+'|\w+)\)`? is not compatible with an interactive environment",
            says="In a notebook, Trainer(strategy={name}) cannot start ranks: there is no file that they could import.",
            ranks=False,
        ),
    ),
)
