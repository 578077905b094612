"""The change for good is shown as a diff of the job's own call, and only where that call is really there."""

from pathlib import Path
from typing import List

import pytest

from ddp_probe.diagnose import Evidence, Finding
from ddp_probe.report.own_change import diff
from ddp_probe.schema import Site

_CASES = [
    ("device-ids", "m = DDP(model, device_ids=[rank], output_device=rank, static_graph=True)", "m = DDP(model, static_graph=True)"),
    ("device-ids", "m = nn.parallel.DistributedDataParallel(\n    model,\n    device_ids=[0],\n)", "m = nn.parallel.DistributedDataParallel(model)"),
    ("map-location", "state = torch.load(path)['state']", "state = torch.load(path, map_location='cpu')['state']"),
    ("move-model", "m = DDP(model)", "model.to(device)  # this rank's card\nm = DDP(model)"),
    ("set-device", "torch.cuda.set_device(rank)", "if torch.cuda.is_available():\n    torch.cuda.set_device(rank)"),
    ("timeout", "dist.init_process_group('gloo')", "dist.init_process_group('gloo', timeout=datetime.timedelta(hours=2))"),
    ("atomic-save", "torch.save(état, path)", "torch.save(état, path + '.tmp')\nos.replace(path + '.tmp', path)"),
    ("settled-load", "torch.save(\n    x,\n    f=path,\n)\nprint(1)", "torch.save(x, f=path + '.tmp')\nos.replace(path + '.tmp', path)\nprint(1)"),
]


def _diff(tmp_path: Path, fix: str, body: str, line: int = 3) -> List[str]:
    file = tmp_path / "train.py"
    file.write_text("# é\ndef main():\n%s\n" % "\n".join("    " + text for text in body.split("\n")), encoding="utf-8")
    evidence = [Evidence("rank.jsonl", 1, Site(str(file), line, "main"), "")]
    return diff(Finding("DDP999", "x", "x", "error", [], "", evidence, "", fix))


def _applied(tmp_path: Path, lines: List[str]) -> str:
    """Return the body after the diff, by taking it apart: kept and added lines of its hunk."""
    body = [line[1:] for line in lines[2:] if line[:1] in " +" and not line.startswith("@@")]
    return "\n".join(line[4:] for line in body if line.startswith("    "))


@pytest.mark.parametrize(("fix", "before", "after"), _CASES, ids=["%s %d" % (case[0], number) for number, case in enumerate(_CASES)])
def test_changes_the_call(tmp_path: Path, fix: str, before: str, after: str) -> None:
    """The diff makes the one change, keeps the other arguments, and what comes out is Python."""
    lines = _diff(tmp_path, fix, before)
    assert lines[:2] == ["--- a/train.py", "+++ b/train.py"]
    changed = _applied(tmp_path, lines)
    assert changed == after
    compile(changed, "train.py", "exec")


@pytest.mark.parametrize(
    ("fix", "body"),
    [
        ("device-ids", "m = DDP(model)"),
        ("device-ids", "runner = Runner(device_ids=[0])"),
        ("map-location", "torch.load(path, map_location='cuda')"),
        ("set-device", "ok = torch.cuda.set_device(rank) is None"),
        ("move-model", "m = DDP(build())"),
        ("rendezvous", "dist.init_process_group('gloo')"),
        ("", "m = DDP(model, device_ids=[0])"),
        ("device-ids", "m = DDP(model, device_ids=["),
    ],
)
def test_shows_none_rather_than_a_wrong_one(tmp_path: Path, fix: str, body: str) -> None:
    """Where the call is another one, has what it needs, or cannot be changed in place, there is no diff."""
    assert _diff(tmp_path, fix, body) == []


def test_needs_the_source(tmp_path: Path) -> None:
    """A line that has moved, a file that is gone, or one that is no Python gives no diff."""
    assert _diff(tmp_path, "device-ids", "m = DDP(model, device_ids=[0])", line=1) == []
    for path in (str(tmp_path / "gone.py"), "/etc/hostname", str(tmp_path)):
        evidence = [Evidence("rank.jsonl", 1, Site(path, 1, ""), "")]
        assert diff(Finding("DDP999", "x", "x", "error", [], "", evidence, "", "device-ids")) == []
