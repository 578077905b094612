"""A job whose source paths, functions, groups, threads, parameters, exceptions and warnings hold what looks like a credential."""

import json
import sys
import threading
from pathlib import Path

import ddp_probe

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "masking"))
from secret_sets import BY_PLACE, OF_LATE, SECRET, SEEN, TEXTS, UNSEEN

TOLD = [*((text % SECRET, SECRET) for text in TEXTS), *SEEN, *UNSEEN, *OF_LATE, *BY_PLACE]
_STEP = "def step(call, given):\n    call(given)\n"


def called(filename, name):
    """Return a function of the job's that lies in a file of this name and has this name itself."""
    space = {}
    exec(compile(_STEP, filename, "exec"), space)
    step = space["step"]
    step.__code__ = step.__code__.replace(co_name=name)
    if sys.version_info >= (3, 11):
        step.__code__ = step.__code__.replace(co_qualname=name)
    return step


def main(answer):
    """Tell the probe every text in every way that a job has."""
    ddp_probe.activate()
    import torch
    import torch.distributed as dist

    dist.init_process_group("gloo", init_method="file://%s.store" % answer, rank=0, world_size=1)
    for number, (text, _) in enumerate(TOLD):
        step = called(text, text)
        step(dist.all_reduce, torch.ones(1))
        thread = threading.Thread(target=step, args=(torch.save, {}), name=text)  # It fails: torch.save needs a file.
        thread.start()
        thread.join()
        if sys.version_info >= (3, 11):
            group = dist.new_group([0], group_desc="%d %s" % (number, text))
            dist.all_reduce(torch.ones(1), group=group)
        model = torch.nn.Linear(1, 1)
        model.register_parameter(text if "." not in text else "p", torch.nn.Parameter(torch.ones(1)))
        called("%s %d" % (text, number), "wrapped")(torch.nn.parallel.DistributedDataParallel, model)
    dist.destroy_process_group()
    Path(answer).write_text(json.dumps({"told": len(TOLD)}))


if __name__ == "__main__":
    threading.excepthook = lambda _: None
    main(sys.argv[1])
