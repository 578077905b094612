"""The permanent change is shown as a diff of the job's own call, made by the edits of the advice, and only if that call exists."""

import re
from pathlib import Path
from typing import Callable, List, Sequence

import pytest

from ddp_probe.judging import change, job_calls
from ddp_probe.judging.rule import Finding
from ddp_probe.shared.schema import Site
from ddp_probe.showing.own_change import diff, shell

_Made = Callable[[Site], Sequence[change.Edit]]
_IDS = "$was if $device.type != 'cpu' else None"


def _ids(site: Site) -> List[change.Edit]:
    return [
        change.Argument(site, change.WRAP, "device_ids", _IDS, 1, False, "[local_rank]"),
        change.Argument(site, change.WRAP, "output_device", _IDS, 2, False, "local_rank"),
    ]


def _no_ids(site: Site) -> List[change.Edit]:
    return [change.Argument(site, change.WRAP, "device_ids", "", 1), change.Argument(site, change.WRAP, "output_device", "", 2)]


def _moved(site: Site) -> List[change.Edit]:
    return [change.Argument(site, change.WRAP, "module", "$was.to('gcu')", 0)]


def _host(site: Site) -> List[change.Edit]:
    return [change.Argument(site, change.LOAD, "map_location", "'cpu'", 1)]


def _guarded(site: Site) -> List[change.Edit]:
    return [change.Instead(site, change.SET_DEVICE, "torch.cuda.is_available()", ("torch_gcu.set_device($args)",), ("torch",))]


def _longer(site: Site) -> List[change.Edit]:
    return [change.Argument(site, change.GROUP, "timeout", "datetime.timedelta(hours=2)", imports=("datetime",))]


def _beside(site: Site) -> List[change.Edit]:
    after = change.Lines(site, ("os.replace($second + '.tmp', $second)",), ("os",), after=True, call=change.SAVE)
    return [change.Argument(site, change.SAVE, "f", "$was + '.tmp'", 1), after]


def _config(site: Site) -> List[change.Edit]:
    value, merged = "dict(a=1)", "dict($was, a=1)"
    return [change.Argument(site, change.RUNNER, "cfg", value, replace=merged)]


def _group(site: Site) -> List[change.Edit]:
    return [change.Lines(site, ("dist.init()",), ("os",), "not torch.cuda.is_available()")]


def _renamed(site: Site) -> List[change.Edit]:
    return [change.Argument(site, change.LOAD_STATE, "state_dict", "{name[7:]: value for name, value in $was.items()}", 0)]


def _cuda(site: Site) -> List[change.Edit]:
    return [change.Rewritten(site, change.MOVE, "$on.to(device($args))", empty="$on.to('cpu')")]


_ON_CARD = "next(model.parameters()).device.type != 'cpu'"
_HOURS = "timeout=datetime.timedelta(hours=2)"
_LONGER = "dist.init_process_group(\n    %s)"
_CASES = [
    (
        _ids,
        "m = DDP(model, device_ids=[rank], output_device=rank)",
        "m = DDP(model, device_ids=[rank] if %s else None, output_device=rank if %s else None)" % (_ON_CARD, _ON_CARD),
    ),
    (
        _ids,
        "device = torch.device('cpu')\nm = DDP(build(), [0])",
        "device = torch.device('cpu')\nm = DDP(build(), [0] if device.type != 'cpu' else None)",
    ),
    (_no_ids, "m = DDP(model, device_ids=[rank], output_device=rank, static_graph=True)", "m = DDP(model, static_graph=True)"),
    (
        _no_ids,
        "m = nn.parallel.DistributedDataParallel(\n    model,\n    device_ids=[0],\n)",
        "m = nn.parallel.DistributedDataParallel(\n    model,\n)",
    ),
    (
        _ids,
        "m = DDP(self.net, device_ids=[self.gpu])",
        "m = DDP(self.net, device_ids=[self.gpu] if %s else None)" % _ON_CARD.replace("model", "self.net"),
    ),
    (_no_ids, "m = DDP(\n    model,\n    device_ids=([0]),  # one\n    static_graph=True)", "m = DDP(\n    model,\n    static_graph=True)"),
    (_no_ids, "m = DDP(device_ids=[0], module=model)", "m = DDP(module=model)"),
    (
        _longer,
        "dist.init_process_group(\n    'gloo',  # é\n    rank=(0\n    ),  # own\n)",
        _LONGER % ("'gloo',  # é\n    rank=(0\n    ),  # own\n    %s,\n" % _HOURS),
    ),
    (_longer, "dist.init_process_group(\n    'gloo')", _LONGER % ("'gloo',\n    %s" % _HOURS)),
    (_longer, "dist.init_process_group(\n    'gloo'  # é\n)", _LONGER % ("'gloo',  # é\n    %s\n" % _HOURS)),
    (_longer, "dist.init_process_group()", "dist.init_process_group(%s)" % _HOURS),
    (_config, "Runner(\n    launcher='pytorch',\n    **config,\n)", "Runner(\n    launcher='pytorch',\n    cfg=dict(a=1),\n    **config,\n)"),
    (_host, "state = torch.load(path)['state']", "state = torch.load(path, map_location='cpu')['state']"),
    (_moved, "m = DDP(model)", "m = DDP(model.to('gcu'))"),
    (_moved, "m = DDP(module=a or b)", "m = DDP(module=(a or b).to('gcu'))"),
    (
        _guarded,
        "torch.cuda.set_device(rank)",
        "if torch.cuda.is_available():\n    torch.cuda.set_device(rank)\nelse:\n    torch_gcu.set_device(rank)",
    ),
    (_longer, "dist.init_process_group('gloo')", "dist.init_process_group('gloo', timeout=datetime.timedelta(hours=2))"),
    (_beside, "torch.save(état, path)", "torch.save(état, path + '.tmp')\nos.replace(path + '.tmp', path)"),
    (
        _beside,
        "torch.save(\n    x,\n    f=a or b,\n)\nprint(1)",
        "torch.save(\n    x,\n    f=(a or b) + '.tmp',\n)\nos.replace((a or b) + '.tmp', (a or b))\nprint(1)",
    ),
    (_config, "Runner(launcher='pytorch', **config)", "Runner(launcher='pytorch', cfg=dict(a=1), **config)"),
    (_config, "Runner(cfg=cfg)", "Runner(cfg=dict(cfg, a=1))"),
    (_group, "runner = Runner()", "if not torch.cuda.is_available():\n    dist.init()\nrunner = Runner()"),
    (_renamed, "m.load_state_dict(state)", "m.load_state_dict({name[7:]: value for name, value in state.items()})"),
    (_cuda, "m = Net().cuda()", "m = Net().to('cpu')"),
    (_cuda, "m = Net().cuda(rank)", "m = Net().to(device(rank))"),
]


def _diff(tmp_path: Path, made: _Made, body: str, line: int = 0) -> List[str]:
    """The call that is meant is in the first line of the body that has a bracket after a name of a call; a line asked for is counted in the file."""
    file = tmp_path / "train.py"
    lines = body.split("\n")
    file.write_text("# é\nimport torch\ndef main():\n%s\n" % "\n".join("    " + text for text in lines), encoding="utf-8")
    number = line or 4 + (1 if lines[0].startswith("device =") else 0)
    return diff(Finding("DDP999", "x", "x", "error", [], "", [], "", edits=list(made(Site(str(file), number, "main")))))


def _applied(lines: List[str]) -> str:
    """Return the body after the diff, by taking it apart: kept and added lines of its hunk."""
    body = [line[1:] for line in lines[2:] if line[:1] in " +" and not line.startswith("@@")]
    return "\n".join(line[4:] for line in body if line.startswith("    "))


@pytest.mark.parametrize(("made", "before", "after"), _CASES, ids=["%s %d" % (case[0].__name__, number) for number, case in enumerate(_CASES)])
def test_changes_the_call(tmp_path: Path, made: _Made, before: str, after: str) -> None:
    """The diff makes the one change, keeps the other arguments, and what comes out is Python."""
    lines = _diff(tmp_path, made, before)
    assert lines[:2] == ["--- a/train.py", "+++ b/train.py"]
    changed = _applied(lines)
    assert changed == after
    compile(changed, "train.py", "exec")


@pytest.mark.parametrize(
    ("made", "body"),
    [
        (_no_ids, "m = DDP(model)"),
        (_ids, "m = DDP(build(), device_ids=[0])"),
        (_no_ids, "runner = Runner(device_ids=[0])"),
        (_guarded, "ok = torch.cuda.set_device(rank) is None"),
        (_moved, "m = wrap(model)"),
        (_beside, "torch.save(x)"),
        (_no_ids, "m = DDP(model, device_ids=["),
        (_group, "for x in y: pass"),
    ],
)
def test_shows_none_rather_than_a_wrong_one(tmp_path: Path, made: _Made, body: str) -> None:
    """If the call is another one, already has the change, or cannot be edited, there is no diff."""
    assert _diff(tmp_path, made, body) == []


def test_an_import_comes_with_it(tmp_path: Path) -> None:
    """A module that the change needs is imported before the others; one that is there is not, and a name that is taken gives no diff."""
    file = tmp_path / "train.py"
    for head, added in (("import sys", ["+import os"]), ("import os", []), ("from x import os", None)):
        file.write_text('"""Train."""\n%s\nrunner = Runner()\n' % head, encoding="utf-8")
        lines = diff(Finding("DDP999", "x", "x", "error", [], "", [], "", edits=_group(Site(str(file), 3))))
        imports = [line for line in lines if line.startswith("+import")]
        assert imports == added if added is not None else lines == []


def test_needs_the_source(tmp_path: Path) -> None:
    """A line that has moved, a missing file, or one that is not Python gives no diff."""
    assert _diff(tmp_path, _no_ids, "m = DDP(model, device_ids=[0])", line=1) == []
    for path in (str(tmp_path / "gone.py"), "/etc/hostname", str(tmp_path)):
        assert diff(Finding("DDP999", "x", "x", "error", [], "", [], "", edits=_no_ids(Site(path, 1)))) == []


def test_two_edits_or_none(tmp_path: Path) -> None:
    """One edit that cannot be made takes the others with it: half a change is a wrong one."""
    assert _diff(tmp_path, lambda site: [*_group(site), *_host(site)], "runner = Runner()") == []


def test_what_is_for_a_shell() -> None:
    """Variables and commands are lines for a shell."""
    edits = [change.Variable("A", "1"), change.Variable("B", None), change.LaunchCommand("torchrun x.py")]
    assert shell(Finding("DDP999", "x", "x", "error", [], "", [], "", edits=edits)) == ["export A=1", "unset B", "torchrun x.py"]


def test_words_and_diff_have_one_source(tmp_path: Path) -> None:
    """The code that the words give is the code of the diff, with plain words for what only the job's own call can tell."""
    site = Site("/train/t.py", 9)
    assert change.words([*_ids(site), "Or not."]) == (
        f"At /train/t.py:9 write device_ids=[local_rank] if {_ON_CARD} else None, if it is given; "
        f"write output_device=local_rank if {_ON_CARD} else None, if it is given. Or not."
    )
    anywhere = change.Argument(Site("/train/t.py"), change.TRAINER, "strategy", "'ddp'")
    assert change.words([anywhere]) == "In /train/t.py, in the call of Trainer(…), write strategy='ddp'."
    assert change.words(_group(site)) == "Before /train/t.py:9 write: if not torch.cuda.is_available(): dist.init() (with import os)."


@pytest.mark.parametrize(
    ("made", "body", "words"),
    [
        (_host, "s = torch.load(*args, **kw)", "give map_location='cpu' in place of what *args and **kw holds"),
        (_host, "s = torch.load(path, **kw)", "write **{**kw, 'map_location': 'cpu'} in place of **kw"),
        (_no_ids, "m = DDP(*args)", "take device_ids out of what *args holds, if it is there"),
        (
            _ids,
            "m = DDP(model, **kw)",
            "give device_ids=[local_rank] if next(model.parameters()).device.type != 'cpu' else None in place of what **kw holds",
        ),
    ],
)
def test_arguments_that_are_passed_on(tmp_path: Path, made: _Made, body: str, words: str) -> None:
    """What a call passes on by * and ** is not taken for the argument that is meant: the words name what holds it."""
    file = tmp_path / "train.py"
    file.write_text(body + "\n", encoding="utf-8")
    told = change.words(made(Site(str(file), 1, "main")), job_calls.names)
    assert words in told
    assert "(*" not in told


@pytest.mark.parametrize(("made", "before", "after"), _CASES, ids=["%s %d" % (case[0].__name__, number) for number, case in enumerate(_CASES)])
def test_words_give_the_code_of_the_diff(tmp_path: Path, made: _Made, before: str, after: str) -> None:
    """If the source is at hand, what the words say to write stands in the diff, letter for letter, and no name in it is made up."""
    file = tmp_path / "train.py"
    file.write_text(before + "\n", encoding="utf-8")
    number = 2 if before.startswith("device =") else 1
    for edit in made(Site(str(file), number, "main")):
        assert isinstance(edit, change.NAMED)
        told = edit.clause(job_calls.names(edit))
        assert "local_rank" not in told
        written = re.match(r"write:? (?:if .*?: )?(.*?)(?: in place of .*)?$", told)
        assert written is None or written.group(1) in re.sub(r"\s+", " ", after)
