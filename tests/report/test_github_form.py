"""The form for GitHub Actions: what its runner reads from each line, and what nothing of a log can make it read."""

import html.parser
import os
import unicodedata
from dataclasses import replace
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Tuple

import pytest

from ddp_probe.judging.judge import Diagnosis
from ddp_probe.judging.rule import Evidence, Undecided
from ddp_probe.shared.schema import Site
from ddp_probe.showing import github, github_summary, terminal

HOSTILE = "a\n::error::forged\r\n::stop-commands::x\x1b[2J\u202e %0A%25 ##[add-path]/tmp </pre><script>alert(1)</script> @someone ]]> :, \x00\ud800"


class Command(NamedTuple):
    """What the runner reads from one line."""

    name: str
    properties: Dict[str, str]
    data: str


def _read(line: str) -> Command:
    """Read a line as TryParseV2 of the runner does (src/Runner.Common/ActionCommand.cs)."""
    line = line.lstrip()
    assert line.startswith("::")
    head, _, data = line[2:].partition("::")
    name, _, properties = head.partition(" ")
    pairs = [pair.split("=", 1) for pair in properties.strip().split(",") if pair]
    return Command(name, {key: _plain(value, ("%0D", "%0A", "%3A", "%2C", "%25")) for key, value in pairs}, _plain(data, ("%0D", "%0A", "%25")))


def _plain(text: str, escapes: Tuple[str, ...]) -> str:
    for escape in escapes:
        text = text.replace(escape, chr(int(escape[1:], 16)))
    return text


@pytest.fixture(autouse=True)
def outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable of a pipeline that runs these tests counts."""
    monkeypatch.setenv("GITHUB_WORKSPACE", "/train")
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)


def test_a_finding_is_an_error_at_its_line(made: Diagnosis) -> None:
    """The command has the path in the checkout, the line, the rule with its ranks, and a message with the verdict and the change."""
    (line,) = github.lines(made)
    assert line.startswith("::error file=t.py,line=24,title=DDP104 submodule-left-behind%2C ranks 0-1::2 of 4 parameters are on cpu")
    read = _read(line)
    assert (read.name, read.properties) == ("error", {"file": "t.py", "line": "24", "title": "DDP104 submodule-left-behind, ranks 0-1"})
    assert read.data.split("\n") == [
        made.findings[0].verdict,
        "At /train/t.py:24.",
        "What to change:",
        *made.findings[0].remedy.split("\n"),
        "Or, for one run without editing: DDP_PROBE_FIX=move-model",
        "More: python -m ddp_probe explain DDP104",
    ]


@pytest.mark.parametrize(
    ("workspace", "file"),
    [("/train", "t.py"), ("/", "train/t.py"), ("/train/", "t.py"), ("/trai", ""), ("/other", ""), ("/train/t.py/x", "")],
)
def test_a_line_outside_the_checkout_has_no_file(made: Diagnosis, monkeypatch: pytest.MonkeyPatch, workspace: str, file: str) -> None:
    """A path counts only if it lies below GITHUB_WORKSPACE."""
    monkeypatch.setenv("GITHUB_WORKSPACE", workspace)
    assert _read(github.lines(made)[0]).properties.get("file", "") == file
    assert ("line" in _read(github.lines(made)[0]).properties) == bool(file)


def test_without_a_workspace_this_folder_is_the_checkout(made: Diagnosis, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A path given through a link is found in this folder too."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    monkeypatch.delenv("GITHUB_WORKSPACE")
    monkeypatch.chdir(tmp_path / "real")
    made.findings[0].evidence[:] = [Evidence("x", 1, Site(str(tmp_path / "link" / "a,b:c%.py"), 3, "f"), "")]
    assert _read(github.lines(made)[0]).properties["file"] == "a,b:c%.py"


def test_a_warning_stays_a_warning(made: Diagnosis) -> None:
    """A finding that did not end the job is not an error; beside it an open question is a notice."""
    made.findings[0] = replace(made.findings[0], severity="warning")
    made = made._replace(undecided=[Undecided("waiting", "Nobody knows.", next="Look.")])
    assert [_read(line).name for line in github.lines(made)] == ["warning", "notice"]


def test_clear_is_a_notice(recorded: Callable[[str], Diagnosis]) -> None:
    """A healthy job is one notice."""
    (line,) = github.lines(recorded("00_healthy_ddp"))
    assert line == "::notice title=ddp_probe::clear: ranks 0-1 finished normally, and no rule found a problem."


def test_undecided_is_a_warning_with_the_next_step(told: Callable[[str], Diagnosis]) -> None:
    """Each open question is a warning that says why it is open, and what to try."""
    diagnosis = told('{"event":"process.start","rank":0,"world_size":3}\n{"event":"process.end","rank":0}')
    read = [_read(line) for line in github.lines(diagnosis)]
    assert [one.name for one in read] == ["warning"] * len(diagnosis.undecided)
    assert read[0].data.split("\n") == [diagnosis.undecided[0].because, "Next: %s" % diagnosis.undecided[0].next]


def test_ranks_of_other_hosts_are_not_forgotten(made: Diagnosis) -> None:
    """A finding in a run whose other hosts have no file here comes with a notice that says so."""
    made.run.elsewhere[:] = [2, 3]
    assert "on other hosts" in _read(github.lines(made)[-1]).data


@pytest.mark.parametrize(("count", "shown"), [(10, 10), (11, 10), (40, 10)])
def test_what_github_would_not_show_is_counted(made: Diagnosis, count: int, shown: int) -> None:
    """Of one level there are at most ten, and the tenth says how many are left out; the other levels are not affected."""
    asked = [Undecided("question", "Question %d." % number, next="Look.") for number in range(count)]
    read = [_read(line) for line in github.lines(made._replace(undecided=asked))]
    notices = [one for one in read if one.name == "notice"]
    assert (len(read), len(notices)) == (shown + 1, shown)
    assert notices[8].data.startswith("Question 8.")
    assert notices[9].data.startswith("Question 9." if count == 10 else "%d more of this level are left out" % (count - 9))


def test_nothing_of_a_log_becomes_a_command(made: Diagnosis) -> None:
    """Line breaks, escapes and percent signs of a log stay inside the message, visible and as they are; a path with them is not a file."""
    evidence = [Evidence("x", 1, Site("/train/" + HOSTILE, 3, HOSTILE), HOSTILE)]
    made.findings[0] = replace(made.findings[0], verdict=HOSTILE, remedy=HOSTILE, slug=HOSTILE, evidence=evidence)
    made = made._replace(undecided=[Undecided(HOSTILE, HOSTILE, next=HOSTILE)])
    lines = github.lines(made)
    assert [_read(line).name for line in lines] == ["error", "notice"]
    assert all(unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp") for line in lines for char in line)
    assert "%0A%25 ##[add-path]/tmp" in _read(lines[0]).data
    assert set(_read(lines[0]).properties) == {"title"}
    assert set(_read(lines[1]).properties) == {"title"}


def test_a_message_is_short_enough_to_be_shown_whole(made: Diagnosis) -> None:
    """However long verdict and change are, the runner has nothing to cut, and what comes last is still there."""
    evidence = [Evidence("x", 1, Site("/" + "p" * 10**4, 3, "f"), "")]
    made.findings[0] = replace(made.findings[0], verdict="v" * 10**5, remedy="\n".join(["r" * 500] * 100), evidence=evidence)
    data = _read(github.lines(made)[0]).data
    assert len(data) <= 4096
    assert data.endswith("More: python -m ddp_probe explain DDP104")


# --- the summary of the step


class _Tags(html.parser.HTMLParser):
    """Collects what a browser would take for tags, and the text between them."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: List[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        """Keep the tag."""
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        """Keep the text."""
        self.text += data


def test_the_report_is_appended_to_the_summary(made: Diagnosis, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What the file has stays, and the whole report follows as preformatted text."""
    file = tmp_path / "summary.md"
    file.write_text("before\n", encoding="utf-8")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(file))
    github.show(made)
    written = file.read_text(encoding="utf-8")
    assert written == "before\n" + github_summary.summary_text(made)
    reader = _Tags()
    reader.feed(github_summary.summary_text(made))
    assert reader.text.split("\n")[0] == "### ddp_probe: found"
    assert "\n".join(line.text for line in terminal.lines(made, 100)) in reader.text


def test_nothing_of_a_log_is_markup_in_the_summary(made: Diagnosis) -> None:
    """All text of a log is inside one element, which nothing in it can end, and of bounded length."""
    made.findings[0] = replace(made.findings[0], verdict=HOSTILE)
    made = made._replace(undecided=[Undecided("many", HOSTILE + "&" * 1900, next=HOSTILE)] * 8)
    text = github_summary.summary_text(made)
    reader = _Tags()
    reader.feed(text)
    assert reader.tags == ["pre"]
    assert text.count("</pre>") == 1
    assert text.endswith("\n</pre>\n\n")
    assert "</pre><script>alert(1)</script> @someone" in reader.text


def test_a_summary_too_long_for_github_is_cut(made: Diagnosis, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the report's length is, the summary stays below 1 MiB and says what is missing."""
    monkeypatch.setattr(terminal, "lines", lambda *_: [terminal.StyledLine("&" * 1000)] * 1000)
    text = github_summary.summary_text(made)
    assert 2**19 < len(text.encode()) < 2**20
    assert text.endswith("\n... and 850999 more characters\n</pre>\n\n")


def test_a_summary_that_cannot_be_written_is_told(
    made: Diagnosis, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The annotations are printed anyway, and one line on stderr says why there is no summary."""
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path))
    github.show(made)
    out, err = capsys.readouterr()
    assert out.startswith("::error ")
    assert err == "GITHUB_STEP_SUMMARY is not written: %s: %s\n" % (tmp_path, os.strerror(21))
