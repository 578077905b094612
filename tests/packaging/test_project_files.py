"""What people and their tools expect at the top of a repository says what is true of this one."""

import configparser
import json
import os
import re
from pathlib import Path
from typing import Any, Dict, List

import pytest
import yaml  # mmengine brings it

import ddp_probe
from ddp_probe.cli._commands import commands


def _yaml(path: Path) -> Dict[str, Any]:
    found: Dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return found


def test_hooks_run_the_lint_of_ci(repo: Path) -> None:
    """Each hook runs, under the name that CI gives it, the command of that step; no static step is missing."""
    steps = dict(re.findall(r'^step "([^"]+)" (\.venv/bin/.+)$', (repo / ".ci" / "run").read_text(encoding="utf-8"), re.M))
    (local,) = _yaml(repo / ".pre-commit-config.yaml")["repos"]
    hooks = {hook["name"]: hook["entry"] for hook in local["hooks"]}
    del steps["bench, short form"]
    assert hooks == steps


def test_the_workflow_calls_ci_with_each_python_that_is_claimed(repo: Path) -> None:
    """The workflow installs the Pythons of the classifiers and runs .ci/run."""
    setup = configparser.ConfigParser()
    setup.read(str(repo / "setup.cfg"), encoding="utf-8")
    claimed = re.findall(r"Python :: (3\.\d+)", setup["metadata"]["classifiers"])
    steps: List[Dict[str, Any]] = _yaml(repo / ".github" / "workflows" / "ci.yml")["jobs"]["all"]["steps"]
    assert sorted(steps[1]["with"]["python-version"].split()) == sorted(claimed)
    assert steps[-1] == {"run": ".ci/run"}


def test_the_image_has_the_python_that_the_tests_want_first(repo: Path) -> None:
    """The image is of the Python from which scripts/test builds first; its user and options are those of the editor and of the page."""
    lines = (repo / ".devcontainer" / "Dockerfile").read_text(encoding="utf-8").splitlines()
    told = dict(line.split(" ", 1) for line in lines if re.match("[A-Z]+ ", line))
    editor = json.loads((repo / ".devcontainer" / "devcontainer.json").read_text(encoding="utf-8"))
    first = re.search(r"find_python (\S+) \S+ .*&& return 0", (repo / "scripts" / "_environment").read_text(encoding="utf-8"))
    assert first is not None
    assert told["FROM"] == "python:%s-bookworm" % first.group(1)
    assert "useradd" in told["RUN"]
    assert editor["remoteUser"] == told["USER"] == told["RUN"].split()[-1]
    programs = [json.loads(told["CMD"])[0], editor["postCreateCommand"].split()[0]]
    assert all(os.access(str(repo / program), os.X_OK) for program in programs)
    assert (repo / ".devcontainer" / editor["build"]["dockerfile"]).is_file()
    (page,) = re.findall(r"docker run --rm (.*) -v", (repo / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    assert page.split() == editor["runArgs"]


@pytest.mark.parametrize("name", ["wrong-answer.yml", "probe-at-fault.yml"])
def test_forms_ask_for_a_bundle_and_say_what_it_masks(repo: Path, name: str) -> None:
    """A form names `bundle`, what is masked and what is not, and only commands and options that there are."""
    text = (repo / ".github" / "ISSUE_TEMPLATE" / name).read_text(encoding="utf-8")
    assert "python -m ddp_probe bundle" in text
    assert "looks like a credential" in text
    assert re.search(r"[Nn]ames of users, hosts and folders are not", text)
    known = {command.name for command in commands()}
    assert set(re.findall(r"python -m ddp_probe (\w+)", text)) <= known
    page = (repo / "docs" / "cli.md").read_text(encoding="utf-8")
    assert all(option in page for option in re.findall(r"`(?:bundle )?(--[\w-]+)`", text) if option != "--version")


def test_a_citation_names_this_version(repo: Path) -> None:
    """CITATION.cff has the version of the package and the day of its entry in the changelog."""
    citation = _yaml(repo / "CITATION.cff")
    heading = "## %s (%s)" % (citation["version"], citation["date-released"])
    assert citation["version"] == ddp_probe.__version__
    assert heading in (repo / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()


def test_what_the_security_page_says_of_sockets(repo: Path) -> None:
    """Of the half that runs in a job, only the remedy that looks for a free port makes a socket."""
    traced = [path for room in ("traced", "activation") for path in (repo / "ddp_probe" / room).rglob("*.py")]
    assert len(traced) > 50
    assert [path.name for path in traced if re.search(r"socket\.(socket|create_)|\bfrom socket import", path.read_text(encoding="utf-8"))] == [
        "rendezvous.py"
    ]
    assert "only the remedy `rendezvous`" in (repo / "SECURITY.md").read_text(encoding="utf-8")
