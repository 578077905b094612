"""docs/attach.md shows what the report prints of a recorded look, and the rules that it lists are those over looks."""

import re
import shutil
import textwrap
from pathlib import Path

from ddp_probe.judging import looks
from ddp_probe.judging.rules import modules, rule_of

RECORDED = Path(__file__).parent / "recorded" / "attach-20261125-130344-935"


def printed(run_python, folder: Path) -> str:
    """Return what the report prints of the recorded run, below a folder of its own."""
    shutil.copytree(str(RECORDED), str(folder / "ddp_probe_runs" / RECORDED.name))
    done = run_python(["-m", "ddp_probe", "report", RECORDED.name], cwd=folder, env={"COLUMNS": "80"})
    assert done.returncode == 1
    return "$ python -m ddp_probe report %s\n" % RECORDED.name + done.stdout.strip()


def test_the_page_shows_what_is_printed(run_python, repo: Path, tmp_path: Path) -> None:
    """The transcript on the page is what the report prints of the recorded run."""
    page = (repo / "docs" / "attach.md").read_text(encoding="utf-8")
    assert textwrap.indent(printed(run_python, tmp_path), "    ", lambda line: bool(line.strip())) in page


def test_the_page_lists_the_rules_over_looks(repo: Path) -> None:
    """Each rule that needs process.look is a row of the page, and no other is."""
    page = (repo / "docs" / "attach.md").read_text(encoding="utf-8")
    known = [rule_of(module).id for module in modules() if looks.NEEDS in rule_of(module).needs]
    assert re.findall(r"^\| (DDP\d+) \|", page, re.MULTILINE) == sorted(known)


def test_a_recorded_look_is_read_by_the_other_commands(run_python, tmp_path: Path) -> None:
    """`stacks` shows the tree of the recorded look without asking anybody, and `bundle` takes it."""
    shown = run_python(["-m", "ddp_probe", "stacks", str(RECORDED)], cwd=tmp_path)
    assert "train.py:36 Shards.__getitem__" in shown.stdout
    assert "did not answer" not in shown.stdout
    assert run_python(["-m", "ddp_probe", "bundle", str(RECORDED), "-o", str(tmp_path / "b.tar.gz")], cwd=tmp_path).returncode == 0
