"""Programs in other styles than the rules' authors wrote: another name, a class, a config, a framework; and what the printed change makes of each.

The log is a rule's own example, whose call is at the line that begins with ¶ here. After ⇒ is what becomes of the lines before it; nothing there
means that there must be no diff, because no exact one can be made.
"""

import textwrap
from typing import List, NamedTuple, Tuple


class Style(NamedTuple):
    """One program: the rule, the number of its example, and the source before and after."""

    rule: str
    example: int
    name: str
    text: str

    @property
    def before(self) -> str:
        """Return the program as the job has it."""
        return self._parts[0].replace("¶", "")

    @property
    def after(self) -> str:
        """Return the program after the change; empty if there is none."""
        return self._parts[1]

    @property
    def line(self) -> int:
        """Return the line of the call."""
        return self._parts[0].partition("¶")[0].count("\n") + 1

    @property
    def _parts(self) -> Tuple[str, str]:
        before, _, after = textwrap.dedent(self.text).lstrip("\n").partition("⇒\n")
        return before, after


_CARD = "torch.device('gcu', int(os.environ['LOCAL_RANK']))"
_TO = "if torch.cuda.is_available() else 'cpu'"


def _of(rule: str, example: int, *named: Tuple[str, str]) -> List[Style]:
    return [Style(rule, example, name, text.replace("CARD", _CARD).replace("TO_CPU", _TO)) for name, text in named]


STYLES = [
    *_of(
        "DDP101",
        0,
        (
            "a method, a line for each argument",
            """
            import os
            import torch
            class Trainer:
                def setup(self):
            ¶        self.net = DDP(
                        module=self.net,
                        gradient_as_bucket_view=True,
                    )
            ⇒
            import os
            import torch
            class Trainer:
                def setup(self):
                    self.net = DDP(
                        module=self.net.to(CARD),
                        gradient_as_bucket_view=True,
                    )
            """,
        ),
        (
            "a dictionary of parts",
            """
            import os
            import torch
            ¶parts = {name: DDP(part) for name, part in parts.items()}
            ⇒
            import os
            import torch
            parts = {name: DDP(part.to(CARD)) for name, part in parts.items()}
            """,
        ),
        (
            "one of two, by a condition",
            """
            import os
            import torch
            ¶model = DDP(model) if world > 1 else model
            ⇒
            import os
            import torch
            model = DDP(model.to(CARD)) if world > 1 else model
            """,
        ),
        (
            "the class under another name",
            """
            import os
            import torch
            from torch.nn.parallel import DistributedDataParallel as Wrapped
            ¶model = Wrapped(model)
            ⇒
            import os
            import torch
            from torch.nn.parallel import DistributedDataParallel as Wrapped
            model = Wrapped(model.to(CARD))
            """,
        ),
        (
            "a lambda",
            """
            import os
            import torch
            ¶wrap = lambda net: nn.parallel.DistributedDataParallel(net)
            ⇒
            import os
            import torch
            wrap = lambda net: nn.parallel.DistributedDataParallel(net.to(CARD))
            """,
        ),
        (
            "through a partial",
            """
            import os
            import torch
            wrap = functools.partial(DDP, broadcast_buffers=False)
            ¶model = wrap(model)
            """,
        ),
    ),
    *_of(
        "DDP106",
        0,
        (
            "a device of the class",
            """
            class Trainer:
                def setup(self):
            ¶        self.net = DDP(self.net, device_ids=[self.args.gpu], output_device=self.args.gpu)
            ⇒
            class Trainer:
                def setup(self):
                    self.net = DDP(self.net, device_ids=[self.args.gpu] if next(self.net.parameters()).device.type != 'cpu' else None, \
output_device=self.args.gpu if next(self.net.parameters()).device.type != 'cpu' else None)
            """,
        ),
        (
            "a choice already, of something else",
            """
            ¶net = DDP(net, device_ids=None if args.cpu else [rank])
            ⇒
            net = DDP(net, device_ids=(None if args.cpu else [rank]) if next(net.parameters()).device.type != 'cpu' else None)
            """,
        ),
        (
            "the class under another name",
            """
            from torch.nn.parallel import DistributedDataParallel as Parallel
            ¶net = Parallel(net, device_ids=[rank])
            ⇒
            from torch.nn.parallel import DistributedDataParallel as Parallel
            net = Parallel(net, device_ids=[rank] if next(net.parameters()).device.type != 'cpu' else None)
            """,
        ),
        (
            "arguments in a dictionary",
            """
            options = dict(device_ids=[rank])
            ¶net = DDP(net, **options)
            """,
        ),
    ),
    *_of(
        "DDP201",
        0,
        (
            "the config's arguments",
            """
            import torch
            import torch.distributed
            if args.launcher != 'none':
            ¶    init_dist(args.launcher, **cfg.env_cfg.dist_cfg)
            ⇒
            import torch
            import torch.distributed
            if args.launcher != 'none':
                if torch.cuda.is_available():
                    init_dist(args.launcher, **cfg.env_cfg.dist_cfg)
                else:
                    torch.distributed.init_process_group('gloo')
            """,
        ),
        ("on the line of its condition", "¶if distributed: init_dist('pytorch')\n"),
    ),
    *_of(
        "DDP203",
        0,
        (
            "by keyword",
            """
            import torch
            ¶model = model.cuda(device=rank)
            ⇒
            import torch
            model = model.to(rank TO_CPU)
            """,
        ),
        (
            "by a name of the device",
            """
            import torch
            ¶model = model.cuda(f"cuda:{rank}")
            ⇒
            import torch
            model = model.to(f"cuda:{rank}" TO_CPU)
            """,
        ),
        (
            "after another move",
            """
            import torch
            ¶net = Net().to(torch.float64).cuda()
            ⇒
            import torch
            net = Net().to(torch.float64).to('cuda' TO_CPU)
            """,
        ),
        (
            "in a chain",
            """
            import torch
            ¶net = Net(cfg).cuda().train()
            ⇒
            import torch
            net = Net(cfg).to('cuda' TO_CPU).train()
            """,
        ),
        (
            "in a list",
            """
            import torch
            ¶nets = [net.cuda(self.gpu) for net in nets]
            ⇒
            import torch
            nets = [net.to(self.gpu TO_CPU) for net in nets]
            """,
        ),
        (
            "an item of a dictionary",
            """
            import torch
            ¶self.nets["g"].cuda()
            ⇒
            import torch
            self.nets["g"].to('cuda' TO_CPU)
            """,
        ),
    ),
    *_of(
        "DDP205",
        0,
        (
            "a script with a head of its own",
            '''
            #!/usr/bin/env python
            """Train."""
            from __future__ import annotations

            import os

            ¶torch.distributed.init_process_group("eccl")
            ⇒
            #!/usr/bin/env python
            """Train."""
            from __future__ import annotations

            import torch_gcu
            import os

            torch.distributed.init_process_group("eccl")
            ''',
        ),
    ),
    *_of(
        "DDP205",
        1,
        (
            "the backend of a config",
            """
            import torch
            ¶dist.init_process_group(cfg.dist.backend, init_method="env://")
            ⇒
            import torch
            dist.init_process_group(cfg.dist.backend if torch.cuda.is_available() else 'gloo', init_method="env://")
            """,
        ),
        (
            "the function under another name of the program's own",
            """
            import torch
            start = torch.distributed.init_process_group
            ¶start("nccl")
            ⇒
            import torch
            start = torch.distributed.init_process_group
            start("nccl" if torch.cuda.is_available() else 'gloo')
            """,
        ),
        (
            "the function under another name",
            """
            import torch
            from torch.distributed import init_process_group as start
            ¶start(backend="nccl", rank=rank, world_size=size)
            ⇒
            import torch
            from torch.distributed import init_process_group as start
            start(backend="nccl" if torch.cuda.is_available() else 'gloo', rank=rank, world_size=size)
            """,
        ),
        (
            "an item of a dictionary",
            """
            import torch
            ¶torch.distributed.init_process_group(
                backend=options["backend"],
                timeout=timedelta(minutes=5),
            )
            ⇒
            import torch
            torch.distributed.init_process_group(
                backend=options["backend"] if torch.cuda.is_available() else 'gloo',
                timeout=timedelta(minutes=5),
            )
            """,
        ),
    ),
    *_of(
        "DDP303",
        0,
        (
            "the move on the line of its condition",
            """
            import os
            import torch_gcu
            def main():
            ¶    if args.card: model.to("gcu")
            ⇒
            import os
            import torch_gcu
            def main():
                torch_gcu.set_device(int(os.environ['LOCAL_RANK']))
                if args.card: model.to("gcu")
            """,
        ),
        (
            "in a statement of several lines",
            """
            import os
            import torch_gcu
            model = build(
                cfg,
            ¶    head=head.to("gcu"),
            )
            ⇒
            import os
            import torch_gcu
            torch_gcu.set_device(int(os.environ['LOCAL_RANK']))
            model = build(
                cfg,
                head=head.to("gcu"),
            )
            """,
        ),
    ),
    *_of(
        "DDP311",
        0,
        (
            "from an argument",
            """
            ¶runner = Runner(model=model, launcher=args.launcher, work_dir=out)
            ⇒
            runner = Runner(model=model, launcher='pytorch', work_dir=out)
            """,
        ),
    ),
    *_of(
        "DDP405",
        0,
        (
            "in a try, over several lines",
            """
            import torch.distributed
            try:
            ¶    dist.init_process_group(
                    "gloo",
                )
            finally:
                pass
            ⇒
            import torch.distributed
            try:
                if not torch.distributed.is_initialized():
                    dist.init_process_group(
                        "gloo",
                    )
            finally:
                pass
            """,
        ),
        ("two statements in a line", "¶dist.init_process_group('gloo'); prepare(1)\n"),
    ),
    *_of(
        "DDP503",
        0,
        (
            "a path of pathlib",
            """
            import os
            ¶torch.save(state, self.out / "last.pth")
            ⇒
            import os
            torch.save(state, str(self.out / "last.pth") + '.tmp')
            os.replace(str(self.out / "last.pth") + '.tmp', (self.out / "last.pth"))
            """,
        ),
        (
            "keywords in another order",
            """
            import os
            ¶torch.save(f=path, obj=state)
            ⇒
            import os
            torch.save(f=str(path) + '.tmp', obj=state)
            os.replace(str(path) + '.tmp', path)
            """,
        ),
        (
            "the function under another name",
            """
            import os
            from torch import save as keep
            ¶keep(state, name)
            ⇒
            import os
            from torch import save as keep
            keep(state, str(name) + '.tmp')
            os.replace(str(name) + '.tmp', name)
            """,
        ),
    ),
    *_of(
        "DDP513",
        0,
        ("by keyword", "¶state = torch.load(f=path)\n⇒\nstate = torch.load(f=path, map_location='cpu')\n"),
        ("a card by position", "¶state = torch.load(path, 'cuda:0')['model']\n⇒\nstate = torch.load(path, 'cpu')['model']\n"),
        (
            "a function of the place",
            "¶state = torch.load(path, map_location=lambda s, _: s.cuda(0))\n⇒\nstate = torch.load(path, map_location='cpu')\n",
        ),
        ("inside of another call", "¶net.load_state_dict(torch.load(path))\n⇒\nnet.load_state_dict(torch.load(path, map_location='cpu'))\n"),
        (
            "the function under another name",
            "from torch import load as read\n¶state = read(path)\n⇒\nfrom torch import load as read\nstate = read(path, map_location='cpu')\n",
        ),
        ("options passed on", "¶state = torch.load(path, **options)\n⇒\nstate = torch.load(path, **{**options, 'map_location': 'cpu'})\n"),
        ("all arguments passed on", "def load(*args, **kwargs):\n¶    return torch.load(*args, **kwargs)\n"),
        ("two in a line", "¶a, b = torch.load(one), torch.load(two)\n"),
    ),
    *_of(
        "DDP515",
        0,
        (
            "an item of the checkpoint",
            """
            ¶net.load_state_dict(ckpt["state_dict"], strict=False)
            ⇒
            net.load_state_dict({name[7:] if name.startswith('module.') else name: value for name, value in ckpt["state_dict"].items()}, strict=False)
            """,
        ),
        (
            "a function that takes the model",
            """
            ¶load_state_dict(net, ckpt)
            ⇒
            load_state_dict(net, {name[7:] if name.startswith('module.') else name: value for name, value in ckpt.items()})
            """,
        ),
    ),
    *_of(
        "DDP525",
        0,
        (
            "in a loop, over several lines",
            """
            import torch.distributed
            for epoch in range(3):
            ¶    torch.save(
                    {"epoch": epoch},
                    out,
                )
            ⇒
            import os
            import torch.distributed
            for epoch in range(3):
                if os.environ.get('RANK', '0') == '0':
                    torch.save(
                        {"epoch": epoch},
                        out,
                    )
            """,
        ),
    ),
    *_of(
        "DDP613",
        0,
        (
            "a False that is there",
            """
            ¶self.net = DDP(self.net, device_ids=ids, find_unused_parameters=False)
            ⇒
            self.net = DDP(self.net, device_ids=ids, find_unused_parameters=True)
            """,
        ),
        (
            "the class of another library",
            """
            ¶net = MMDistributedDataParallel(net, **options)
            ⇒
            net = MMDistributedDataParallel(net, **{**options, 'find_unused_parameters': True})
            """,
        ),
    ),
]
