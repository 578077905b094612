"""report --format takes each form of the table, and the short options are the same forms."""

from pathlib import Path
from typing import List

import pytest

from ddp_probe import cli
from ddp_probe.showing import forms

RECORDED = Path(__file__).resolve().parent.parent / "recorded" / "new"
FOUND, CLEAR = "03_submodule_left_behind", "00_healthy_ddp"


@pytest.mark.parametrize("name", forms.NAMES)
def test_every_form_has_the_exit_code_of_the_verdict(name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the form, found is 1 and clear is 0, and only stdout is written to."""
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    assert [cli.main(["report", "--format", name, str(RECORDED / job)]) for job in (FOUND, CLEAR)] == [1, 0]
    out, err = capsys.readouterr()
    assert err == ""
    assert "DDP104" in out


@pytest.mark.parametrize("name", [forms.JSON, forms.BRIEF])
def test_a_short_option_is_the_same_form(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """--json and --brief print what --format json and --format brief print."""
    printed: List[str] = []
    for option in (["--" + name], ["--format", name]):
        assert cli.main(["report", *option, str(RECORDED / FOUND)]) == 1
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1] != ""


@pytest.mark.parametrize("name", [form.name for form in forms.FORMS if not form.follows])
def test_a_document_is_not_followed(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """--follow with a form that is one document is a wrong command line, which names the forms that it takes."""
    assert cli.main(["report", "--follow", "--format", name, str(RECORDED / FOUND)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "--follow cannot print the form %s, which is printed once, when the job has ended." % name,
        "  what to do: Leave out --follow, or choose one of these forms: terminal, json, brief.",
    ]


@pytest.mark.parametrize(("args", "what"), [(["--format", "html"], "'html'"), (["--format", "junit", "--json"], "not allowed with")])
def test_another_form_and_two_forms_are_refused(args: List[str], what: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A form that does not exist, and two forms at once, are a wrong command line."""
    assert cli.main(["report", *args, str(RECORDED / FOUND)]) == 2
    assert what in capsys.readouterr().err


def test_the_page_describes_every_form(capsys: pytest.CaptureFixture[str]) -> None:
    """report --help has a line for each form of the table."""
    assert cli.main(["report", "--help"]) == 0
    page = capsys.readouterr().out
    assert [name for name in forms.NAMES if "\n  %-9s " % name not in page] == []
