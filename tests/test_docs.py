"""The reference pages are what the code prints."""

import json
import shutil
from pathlib import Path
from typing import Any, Callable

import pytest

from ddp_probe.shared import schema, settings

Run = Callable[..., Any]


@pytest.fixture
def copy(repo: Path, tmp_path: Path) -> Path:
    """A copy of what render_docs reads and writes."""
    for name in ("ddp_probe", "docs", "scripts", "tests/rules"):
        shutil.copytree(str(repo / name), str(tmp_path / name), ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(str(repo / "setup.cfg"), str(tmp_path / "setup.cfg"))
    return tmp_path


def test_no_page_is_stale(repo: Path, run_python: Run) -> None:
    """scripts/render_docs --check finds every page as it prints it under this Python and this msgspec."""
    done = run_python([repo / "scripts" / "render_docs", "--check"])
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


@pytest.mark.parametrize("seed", ["0", "1", "2"])
def test_pages_do_not_depend_on_the_order_of_sets(repo: Path, run_python: Run, clean_env: Run, seed: str) -> None:
    """Whatever the hash seed, the same text is printed."""
    assert run_python([repo / "scripts" / "render_docs", "--check"], env=clean_env(PYTHONHASHSEED=seed)).returncode == 0


def test_a_stale_page_is_named_and_then_mended(copy: Path, run_python: Run, clean_env: Run) -> None:
    """--check exits 1 with the page and the difference and writes nothing; without it the page is written."""
    env = clean_env(PYTHONPATH=None)
    code = copy / "ddp_probe" / "shared" / "schema.py"
    before = (copy / "docs" / "events.md").read_text(encoding="utf-8")
    code.write_text(code.read_text(encoding="utf-8").replace('"""restore() was called."""', '"""restore() was asked for."""'), encoding="utf-8")
    (copy / "docs" / "settings.md").unlink()
    script = copy / "scripts" / "render_docs"
    checked = run_python([script, "--check"], env=env)
    assert checked.returncode == 1
    assert [line for line in checked.stdout.splitlines() if line.endswith("Run scripts/render_docs.")] == [
        "docs/%s is stale. Run scripts/render_docs." % name for name in ("events.md", "schema.json", "settings.md")
    ]
    assert "+restore() was asked for." in checked.stdout
    assert (copy / "docs" / "events.md").read_text(encoding="utf-8") == before
    assert not (copy / "docs" / "settings.md").exists()
    assert run_python([script], env=env).returncode == 0
    assert run_python([script, "--check"], env=env).returncode == 0
    assert "restore() was asked for." in (copy / "docs" / "events.md").read_text(encoding="utf-8")


def test_every_event_and_setting_has_its_place(repo: Path) -> None:
    """Each event is a heading, each variable a row, and the JSON Schema names each event."""
    events = (repo / "docs" / "events.md").read_text(encoding="utf-8").splitlines()
    variables = (repo / "docs" / "settings.md").read_text(encoding="utf-8")
    published = json.loads((repo / "docs" / "schema.json").read_text(encoding="utf-8"))
    assert [line[3:] for line in events if line.startswith("## ") and line[3:4].islower()] == list(schema.EVENTS)
    assert all("| `%s` |" % setting.name in variables for setting in settings.SETTINGS)
    assert list(published["discriminator"]["mapping"]) == list(schema.EVENTS)


def test_links_within_the_events_page_lead_somewhere(repo: Path) -> None:
    """Each link to a heading of the page meets one."""
    text = (repo / "docs" / "events.md").read_text(encoding="utf-8")
    headings = {line.lstrip("# ").replace(".", "").lower() for line in text.splitlines() if line.startswith("#")}
    targets = {part.split(")")[0] for part in text.split("](#")[1:]}
    assert targets <= headings
