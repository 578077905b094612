"""What scripts/new writes works: from the skeleton to a recorded event, a finding, a changed call, an accelerator in the log, a field in a line."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, List

import pytest


def _told(repo: Path, kind: str) -> List[str]:
    """Return the files that CONTRIBUTING.md names for a kind: those of the list after its mark."""
    text = (repo / "CONTRIBUTING.md").read_text(encoding="utf-8")
    listed = re.search(r"<!-- files of a new %s -->\n((?:- .*\n)+)" % kind, text)
    assert listed is not None, "CONTRIBUTING.md has no list of the files of a new %s" % kind
    return sorted(re.findall(r"(?m)^- `([^`]+)`", listed.group(1)))


def test_a_probe(checkout: Any, repo: Path) -> None:
    """A new probe of torch.distributed.all_reduce records a real call before and after it, and every table knows the probe."""
    changed = checkout.made("probe", "all_reduce")
    assert [name.replace("all_reduce", "NAME") for name in changed] == _told(repo, "probe")
    checkout.tested("tests/probes/test_all_reduce_probe.py")
    assert "## dist.all_reduce" in (checkout.root / "docs" / "events.md").read_text(encoding="utf-8")
    probes = checkout.root / "docs" / "contributing" / "probes.md"
    assert "## all_reduce" in probes.read_text(encoding="utf-8")


def test_a_rule(checkout: Any, repo: Path) -> None:
    """A new rule finds its cause in its example and in no example of another rule, and stays silent on its own other one."""
    changed = checkout.made("rule", "saved-too-soon")
    assert [name.replace("saved_too_soon", "NAME").replace("saved-too-soon", "SLUG") for name in changed] == _told(repo, "rule")
    checkout.tested("tests/diagnose/test_examples.py", "-k", "saved-too-soon or unique or exist")
    log = checkout.root / "rank00000.node.1.jsonl"
    log.write_text('{"event":"checkpoint.save","phase":"begin","rank":1,"span":1,"path":"saved-too-soon.pth"}\n', encoding="utf-8")
    report = checkout.run("-m", "ddp_probe", "report", "--json", log)
    assert [(finding["slug"], finding["ranks"]) for finding in json.loads(report.stdout)["findings"]] == [("saved-too-soon", [1])]


def test_a_rule_by_words(checkout: Any, repo: Path) -> None:
    """A new rule known by words alone finds them in its example and in a plain log, and has no check."""
    changed = checkout.made("rule", "saved-too-soon", "--by-words", "--cause", "checkpoint_write_read_race")
    assert [name.replace("saved_too_soon", "NAME").replace("saved-too-soon", "SLUG") for name in changed] == _told(repo, "rule by words")
    checkout.tested("tests/diagnose/test_examples.py", "-k", "saved-too-soon or unique or exist")
    checkout.tested("tests/advice/test_advice.py", "-k", "no_rule_is_forgotten")
    log = checkout.root / "job.log"
    log.write_text("RuntimeError: saved-too-soon\n", encoding="utf-8")
    report = checkout.run("-m", "ddp_probe", "report", "--json", log)
    assert [finding["slug"] for finding in json.loads(report.stdout)["findings"]] == ["saved-too-soon"]


def test_a_release_waits_for_the_texts_in_another_language(checkout: Any) -> None:
    """A new rule is in English on the Chinese page; --release refuses it until its entries are filled in, and again if the English text changes."""
    checkout.made("rule", "saved-too-soon", "--by-words")
    page, folder = checkout.root / "docs" / "rules.zh-CN.md", checkout.root / "ddp_probe" / "showing" / "languages" / "zh"
    assert "\nAn exception says saved-too-soon.\n" in page.read_text(encoding="utf-8")
    refused = checkout.run("scripts/render_docs", "--release")
    assert refused.returncode == 1
    first, *lines = refused.stdout.splitlines()
    assert first.startswith("ddp_probe/showing/languages/zh lacks 4 texts")
    translated = "\n".join('msgstr "有异常的内容是 saved-too-soon。"' if line == 'msgstr ""' else line for line in lines)
    (folder / "new.po").write_text('msgid ""\nmsgstr "Language: zh_CN"\n%s\n' % translated, encoding="utf-8")
    assert checkout.run("scripts/render_docs").returncode == 0
    assert "\n有异常的内容是 saved-too-soon。\n" in page.read_text(encoding="utf-8")
    assert checkout.run("scripts/render_docs", "--release").returncode == 0
    checkout.edit("ddp_probe/judging/rules/saved_too_soon.py", 'title="An exception', 'title="A failure')
    assert checkout.run("scripts/render_docs").returncode == 0
    again = checkout.run("scripts/render_docs", "--release")
    assert again.returncode == 1
    assert [line for line in again.stdout.splitlines()[1:] if line.startswith("msgid")] == ['msgid "A failure says saved-too-soon."']


def test_a_remedy_of_a_call_that_no_probe_watches(checkout: Any) -> None:
    """A new remedy of a method that nothing else watches passes its test, although the run without the remedy leaves no log."""
    call = "import torch\n\nmodel = torch.nn.Linear(2, 2)\nmodel.load_state_dict(model.state_dict())"
    options = ("--target", "torch.nn.modules.module:Module.load_state_dict", "--argument", "strict", "--value", "False", "--call", call)
    checkout.made("remedy", "tolerant-load", *options)
    checkout.tested("tests/remedies/test_tolerant_load_remedy.py")


def test_a_remedy(checkout: Any, repo: Path, armed: Any) -> None:
    """A new remedy changes a real call, which then does something else, and writes what it changed."""
    options = ("--target", "torch.serialization:save", "--argument", "_use_new_zipfile_serialization", "--value", "False")
    call = "import torch, zipfile\n\ntorch.save({}, 'x.pt')\nprint('zip' if zipfile.is_zipfile('x.pt') else 'legacy')"
    changed = checkout.made("remedy", "old-format", *options, "--call", call)
    assert [name.replace("old_format", "NAME") for name in changed] == _told(repo, "remedy")
    checkout.tested("tests/remedies/test_old_format_remedy.py")
    templates = checkout.root / "sitecustomize_templates"
    said = []
    for fix in (None, "old-format"):
        env = armed(checkout.root / "runs", DDP_PROBE_FIX=fix, PYTHONPATH="%s:%s" % (templates, checkout.root))
        said.append(checkout._run(call, env=env, cwd=checkout.root, timeout=150).stdout)
    assert said == ["zip\n", "legacy\n"]


def test_an_accelerator(checkout: Any, repo: Path) -> None:
    """A new accelerator is in the first line of the log, its set_device is recorded, and no file of the package may import its module."""
    changed = checkout.made("accelerator", "acme")
    assert [name.replace("acme", "NAME") for name in changed] == _told(repo, "accelerator")
    checkout.tested("tests/facts/test_acme_accelerator.py", "tests/test_accelerators.py")
    assert "    torch_acme\n" in (checkout.root / "setup.cfg").read_text(encoding="utf-8")


def test_a_field(checkout: Any, repo: Path) -> None:
    """A new field of an event is written, read back, and explained on the page of events."""
    changed = checkout.made("field", "checkpoint.save.flushed", "--type", "flag", "--doc", "The file was flushed to the disk.")
    assert [name.replace("checkpoint_save_flushed", "EVENT_NAME") for name in changed] == _told(repo, "field")
    checkout.tested("tests/record/test_checkpoint_save_flushed_field.py", "tests/test_schema.py")
    page = (checkout.root / "docs" / "events.md").read_text(encoding="utf-8")
    assert "| `flushed` | true or false | The file was flushed to the disk. |" in page


def test_a_check(checkout: Any, repo: Path) -> None:
    """A new check passes on a host without its fault and fails on one with it, and explain and the page of checks know it."""
    changed = checkout.made("check", "acme-folder")
    assert [name.replace("acme_folder", "NAME") for name in changed] == _told(repo, "check")
    checkout.tested("tests/doctor/test_acme_folder_check.py")
    page = checkout.run("-m", "ddp_probe", "explain", "acme-folder")
    assert page.stdout.startswith("DOC3")
    assert "unset ACME_FOLDER" not in page.stdout


def test_a_command(checkout: Any, repo: Path) -> None:
    """A new command reads a recorded run, and is on the page of help, in docs/cli.md and in the completion script."""
    changed = checkout.made("command", "sizes")
    assert [name.replace("sizes", "NAME") for name in changed] == _told(repo, "command")
    checkout.tested("tests/cli/test_sizes_command.py")
    names = re.findall(r"(?m)^  (\w+) +[A-Z]", checkout.run("-m", "ddp_probe", "help").stdout)
    assert names.index("runs") + 1 == names.index("sizes")
    assert "    ['sizes *']=runs" in checkout.run("-m", "ddp_probe", "completion", "bash").stdout


def _tool(name: str) -> str:
    """Return the path of a linter; it skips the test if there is none."""
    tool = Path(sys.executable).parent / name
    if not tool.exists():
        pytest.skip("%s needs Python 3.10 or newer" % name)
    return str(tool)


def _write_one_of_each(checkout: Any) -> None:
    """Write a skeleton of each kind, and print the tables."""
    for words in (
        ["probe", "all_reduce"],
        ["rule", "a-rule"],
        ["rule", "some-words", "--by-words"],
        ["remedy", "a-remedy"],
        ["accelerator", "acme"],
        ["field", "checkpoint.save.done", "--type", "flag"],
        ["check", "a-check"],
        ["command", "sizes"],
    ):
        assert checkout.new(*words).returncode == 0
    assert checkout.run("scripts/render_docs").returncode == 0


def _check(checkout: Any, *command: str) -> None:
    """Run a linter in the checkout; it must have nothing to say."""
    done = subprocess.run(command, cwd=checkout.root, env=checkout.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert done.returncode == 0, done.stdout.decode()


def test_every_skeleton_is_laid_out(checkout: Any) -> None:
    """With one skeleton of each kind, the linter, the formatter and the import contracts have nothing to say."""
    ruff, imports = _tool("ruff"), _tool("lint-imports")
    _write_one_of_each(checkout)
    _check(checkout, ruff, "check", "--no-cache", ".")
    _check(checkout, ruff, "format", "--check", "--no-cache", ".")
    _check(checkout, imports, "--no-cache")
    _check(checkout, sys.executable, "scripts/import_graph")


@pytest.mark.nightly
def test_every_skeleton_has_types(checkout: Any) -> None:
    """With one skeleton of each kind, mypy has nothing to say about the package."""
    mypy = _tool("mypy")
    _write_one_of_each(checkout)
    _check(checkout, mypy, "--strict", "-p", "ddp_probe")


def test_the_first_rule_of_a_new_cause_chooses_its_hundred(checkout: Any) -> None:
    """--hundred puts the id among those of the hundred, whatever the cause's other rules have."""
    assert checkout.new("rule", "one-more-limit", "--by-words", "--hundred", "DDP2").returncode == 0
    text = (checkout.root / "ddp_probe/judging/rules/one_more_limit.py").read_text(encoding="utf-8")
    assert re.search(r'id="DDP2\d\d"', text)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["probe", "AllReduce"], "'AllReduce' is not a valid name for a probe. Use small letters, digits and underscores, such as all_reduce."),
        (["probe", "load"], "ddp_probe/shared/schema.py has a class Load already. Choose another name."),
        (["probe", "reduce", "--target", "torch.load"], "'torch.load' is not a valid target. Write it as module:qualname, such as"),
        (["probe", "first", "--event", "checkpoint.load"], "An event has the name checkpoint.load already."),
        (["rule", "Bad_Slug"], "'Bad_Slug' is not a valid name for a rule. Use small letters, digits and hyphens, such as model-never-moved."),
        (["rule", "model-never-moved"], "A rule has, or had, the slug model-never-moved. Choose another name."),
        (["rule", "a-new-one", "--cause", "nothing"], "'nothing' is not a cause. ddp_probe/judging/causes.py lists them; add a new one there."),
        (["remedy", "atomic-save"], "ddp_probe/traced/remedies/atomic_save.py exists already. Choose another name."),
        (["probe", "zip", "--target", "zipfile:is_zipfile"], "Write with --call the lines that call zipfile.is_zipfile, such as"),
        (["remedy", "one", "--target", "torch.serialization:save"], "Write with --call the lines that call torch.serialization.save, such as"),
        (["remedy", "one", "--value", "cpu"], "'cpu' is not a valid Python literal."),
        (["accelerator", "gcu"], "ddp_probe/shared/accelerators.py has the record 'gcu' for gcu already. Change that one."),
        (["check", "Shared"], "'Shared' is not a valid name for a check. Use small letters, digits and hyphens, such as shared-memory."),
        (["check", "shared-memory"], "A check has the slug shared-memory already. Choose another name."),
        (["command", "report"], "There is a command report already. Choose another name."),
        (["field", "checkpoint.save.path"], "checkpoint.save has a field path already. Choose another name."),
        (["field", "nothing.path"], "'nothing' is not an event. Write EVENT.FIELD with one of docs/events.md, such as checkpoint.save.path."),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_a_name_that_cannot_be_is_refused(repo: Path, run_python: Any, words: List[str], why: str) -> None:
    """A name that is taken or not valid is refused with a sentence and exit code 2, and nothing is written."""
    done = run_python([repo / "scripts" / "new", *words])
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("scripts/new: " + why)


@pytest.mark.parametrize("kind", ["", "probe", "rule", "remedy", "accelerator", "field", "check", "command"])
def test_help_says_what_each_kind_takes(repo: Path, run_python: Any, kind: str) -> None:
    """--help exits 0 and names the kinds, or what one kind takes; a kind that does not exist exits 2."""
    done = run_python([repo / "scripts" / "new", *filter(None, [kind]), "--help"])
    assert done.returncode == 0
    assert ("NAME" if kind else "accelerator") in done.stdout
    assert run_python([repo / "scripts" / "new", "gadget", "x"]).returncode == 2
