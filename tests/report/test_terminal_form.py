"""The form for a person: what was read, then the verdict, its evidence, what to change, the ranks; at 80 columns, without colour."""

import io
import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Callable, List

import pytest
from msgspec import structs

from ddp_probe.judging import open_questions
from ddp_probe.judging.judge import Diagnosis, judge
from ddp_probe.judging.rule import Undecided
from ddp_probe.reading.load_run import load
from ddp_probe.reading.model import Run
from ddp_probe.shared.schema import Site
from ddp_probe.showing import found, terminal
from ddp_probe.showing.layout import GLUE, wrap
from ddp_probe.showing.paths import Paths
from ddp_probe.wording.text import say

_CRASH = (
    "ValueError: DistributedDataParallel's input module must be on the same type of devices, but input module parameters locate in {'cpu', 'cuda'}."
)
_JOBS = ["03_submodule_left_behind", "00_healthy_cards", "12_killed_by_sigkill", "10_rank_never_started", "09_other_shape_on_one_rank"]


def _texts(diagnosis: Diagnosis, width: int = 80) -> List[str]:
    return [line.text for line in terminal.lines(diagnosis, width)]


def test_a_found_cause_is_told_in_order(made: Diagnosis) -> None:
    """Verdict, change, evidence, table and inventory follow each other, with the lines of the log and of the job."""
    texts = _texts(made)
    wanted = [
        "run ",
        "DDP104 submodule-left-behind  ranks 0-1",
        "  change",
        "    Move the whole model once, before the wrap:",
        "        model.to(device)",
        "  evidence",
        "    at /train/t.py:24 in main",
        "      ranks 0-1  parameters on cpu, gcu:LOCAL_RANK",
        "        rank00000.node1.",
        "  more: python -m ddp_probe explain DDP104",
        "ranks  parameters  device_ids  card  phase     end",
        "0      cpu, gcu:0  none        0     wrapping  failed ValueError",
        "1      cpu, gcu:1  none        1     wrapping  failed ValueError",
        "  read     3 files, ",
        "  ranks    2 expected, 2 wrote: all failed ValueError",
    ]
    places = [next((number for number, text in enumerate(texts) if text.startswith(start)), -1) for start in wanted]
    assert -1 not in places
    assert places == sorted(places)


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("job", _JOBS)
def test_no_line_is_longer_than_the_terminal(job: str, width: int, recorded: Callable[[str], Diagnosis]) -> None:
    """Only what has no space in it, such as a path, may stick out."""
    for text in _texts(recorded(job), width):
        assert len(text) <= width or " " not in text.strip(), text


def test_a_clear_run_says_so(recorded: Callable[[str], Diagnosis]) -> None:
    """A healthy job's report says clear, and names nothing to change."""
    texts = _texts(recorded("00_healthy_cards"))
    assert "clear: ranks 0-1 finished normally, and no rule found a problem." in texts
    assert "  change" not in texts


def test_an_undecided_run_tells_why(told: Callable[[str], Diagnosis]) -> None:
    """Ranks that left no file are counted in the inventory, and are a reason."""
    texts = _texts(told('{"event":"process.start","rank":0,"world_size":2}\n{"event":"process.end","rank":0}'))
    assert "  ranks    2 expected, 1 wrote: rank 0 ended; rank 1 never started, or wrote no" in texts
    assert "undecided: no rule can name a cause, because" in texts
    assert "  - Rank 1 left no file, of 2 expected." in texts


def test_printed_text_is_weaker_evidence(told: Callable[[str], Diagnosis]) -> None:
    """A cause found in a plain log is marked as weaker evidence, with what the probe would add."""
    texts = " ".join(text.strip() for text in _texts(told(_CRASH)))
    assert "plain log without the probe's files" in texts
    assert "Based on the printed text alone, which is weaker evidence. A run with DDP_PROBE=1 would add ddp.init." in texts


def test_evidence_that_ranks_share_is_told_once(made: Diagnosis) -> None:
    """Equal evidence of several logs is shown once, with the ranks."""
    evidence = made.findings[0].evidence
    evidence[:] = [structs.replace(one, text="parameters on cpu") for one in evidence]
    texts = _texts(made)
    place = texts.index("    at /train/t.py:24 in main")
    assert texts[place + 1] == "      ranks 0-1  parameters on cpu"
    assert texts[place + 2].startswith("        rank00000.node1.")
    assert texts[place + 2].endswith(":8 and 1 more like it")


def test_evidence_that_differs_otherwise_is_told_apart(made: Diagnosis) -> None:
    """A number that is not each rank's own keeps its lines apart."""
    evidence = made.findings[0].evidence
    evidence[:] = [structs.replace(one, text="%d parameters on cpu" % number) for number, one in zip((5, 7), evidence)]
    texts = _texts(made)
    assert "      rank 0  5 parameters on cpu" in texts
    assert "      rank 1  7 parameters on cpu" in texts


def _with_source(made: Diagnosis, folder: Path, age: float) -> Diagnosis:
    """Put the line that the finding speaks of into a file of this age, in seconds before the run."""
    file = folder / "t.py"
    before = "".join("line_%d = 0\n" % number for number in range(1, 22))
    file.write_text(before + "def main():\n    x = 1\n    m = DDP(model)  # wraps\n", encoding="utf-8")
    began = min(process.start_when for process in made.run.processes) - age
    os.utime(file, (began, began))
    evidence = made.findings[0].evidence
    evidence[:] = [structs.replace(one, site=Site(str(file), 24, "main")) for one in evidence]
    return made


def test_the_jobs_own_line_is_framed(made: Diagnosis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the source is available, the line is between the verdict and the change, with a caret below its call, and its path once and relative."""
    monkeypatch.chdir(tmp_path)
    texts = _texts(_with_source(made, tmp_path, 60))
    place = texts.index("  t.py:24 in main")
    assert texts[place + 1 : place + 6] == [
        "    22 | def main():",
        "    23 |     x = 1",
        "  > 24 |     m = DDP(model)  # wraps",
        "       |         ^^^^^^^^^^",
        "  change",
    ]
    assert "\n".join(texts).count("t.py:24") == 1
    assert str(tmp_path) not in "\n".join(texts)


def test_a_source_that_is_newer_than_the_run_says_so(made: Diagnosis, tmp_path: Path) -> None:
    """A frame of a file that was changed after the run began warns of it."""
    assert "after the run began: the line may have moved" in "\n".join(_texts(_with_source(made, tmp_path, -60)))
    assert "after the run began" not in "\n".join(_texts(_with_source(made, tmp_path, 60)))


def test_no_other_file_is_read(made: Diagnosis, tmp_path: Path) -> None:
    """A path in a log that is not a Python file, or has no such line, gets no code frame."""
    for name, text in (("secret", "x\n" * 30), ("short.py", "x\n")):
        (tmp_path / name).write_text(text, encoding="utf-8")
        evidence = made.findings[0].evidence
        evidence[:] = [structs.replace(one, site=Site(str(tmp_path / name), 24, "main")) for one in evidence]
        assert not [line for line in _texts(made) if line.startswith("  >")]


def test_a_path_with_a_space_is_one_path(made: Diagnosis, tmp_path: Path) -> None:
    """A file below a folder with a space is named in full the first time, on one line, and then by its name, like any other."""
    source = tmp_path / "my clone" / "train.py"
    source.parent.mkdir()
    source.write_text("pass\n", encoding="utf-8")
    text = "First %s at %s:12, then %s:24 in turn." % ("word " * 12, source, source)
    lines = wrap(Paths(made.run, GLUE)(text), 40)
    assert [line for line in lines if "%s:12" % source in line]
    assert lines[-1].endswith("then train.py:24 in turn.")
    assert Paths(made.run)("The folder /dev/shm is full at %s:3, as /nowhere at all/train.py:3 says." % source) == (
        "The folder /dev/shm is full at %s:3, as /nowhere at all/train.py:3 says." % source
    )


def test_an_open_question_ends_with_what_to_try(told: Callable[[str], Diagnosis]) -> None:
    """What is undecided is followed by its next step."""
    diagnosis = told('{"event":"process.start","rank":0,"world_size":2}\n{"event":"process.end","rank":0}')
    texts = _texts(diagnosis._replace(undecided=[Undecided("open", "Nobody knows.", (), "Look at /a/b.py:3 again.")]))
    assert texts[texts.index("  - Nobody knows.") + 1] == "    next: Look at /a/b.py:3 again."


def test_a_remedy_by_variable_is_offered_where_there_is_one(made: Diagnosis) -> None:
    """A finding with a remedy names it; one without says nothing of the variable."""
    assert "DDP_PROBE_FIX=move-model" in "\n".join(_texts(made))
    without = made._replace(findings=[replace(made.findings[0], fix="")])
    assert "DDP_PROBE_FIX" not in "\n".join(_texts(without))


_MENDED = """
{"event":"process.start","rank":0,"world_size":2,"role":"rank"}
{"event":"remedy.applied","rank":0,"remedy":"device-ids","site":{"file":"/train/t.py","line":9},"before":{"device_ids":"[0]"},\
"after":{"device_ids":"None"},"because":"the module is on cpu"}
{"event":"remedy.declined","rank":0,"remedy":"backend","because":"neither a nor b is available"}
{"event":"remedy.applied","rank":0,"remedy":"atomic-save","because":"a save to a path is not atomic"}
{"event":"process.end","rank":0}
{"event":"process.start","rank":1,"world_size":2,"role":"rank"}
{"event":"remedy.applied","rank":1,"remedy":"device-ids","site":{"file":"/train/t.py","line":9},"before":{"device_ids":"[1]"},\
"after":{"device_ids":"None"},"because":"the module is on cpu"}
{"event":"process.end","rank":1}
"""


def test_what_remedies_did_is_told_once_for_all_ranks(told: Callable[[str], Diagnosis]) -> None:
    """A run that DDP_PROBE_FIX has changed says what was changed at which line, and what was declined."""
    page = " ".join(" ".join(_texts(told(_MENDED))).split())
    assert "what DDP_PROBE_FIX did" in page
    assert "device-ids on ranks 0-1 at /train/t.py:9: device_ids=[0] became device_ids=None, because the module is on cpu." in page
    assert "backend did nothing on rank 0: neither a nor b is available." in page
    assert "atomic-save on rank 0: " in page


def test_the_hosts_of_the_guilty_are_named(many: Callable[..., Path]) -> None:
    """If there are several hosts, the headline names those of the guilty ranks."""
    texts = _texts(judge(load([str(many(64, {3, 62}))])))
    assert "DDP104 submodule-left-behind  ranks 3, 62 on node1, node8" in texts


def test_what_followed_is_folded_beneath(made: Diagnosis) -> None:
    """Consequences are listed under their cause, up to a limit."""
    made.findings[0].consequences.extend("DDP999 later: number %d." % number for number in range(20))
    texts = _texts(made)
    start = texts.index("  what followed from it")
    assert texts[start + 1] == "  - DDP999 later: number 0."
    assert "    ... and 14 more; --json has them all" in texts


def test_lines_that_could_not_be_read_are_counted(tmp_path: Path) -> None:
    """Skipped lines, unreadable files and events of another version are in the inventory."""
    good = '{"event":"process.start","phase":"point","rank":0,"world_size":1}\n{"event":"new.thing"}\nnoise\n'
    (tmp_path / "rank00000.node1.1.jsonl").write_text(good + '{"event":"ddp', encoding="utf-8")
    (tmp_path / "rank00001.node1.2.jsonl").write_text("", encoding="utf-8")
    texts = _texts(judge(load([str(tmp_path)])))
    assert any(text.startswith("  skipped  2 lines (1 not JSON, 1 torn), in rank00000.node1.1.jsonl") for text in texts)
    assert "  unread   rank00001.node1.2.jsonl: It contains no event." in texts
    assert any(text.startswith("  unknown  1 event from an unknown version of the probe: new.thing") for text in texts)


def test_what_a_log_holds_is_neither_markup_nor_escape(told: Callable[[str], Diagnosis]) -> None:
    """Escapes, rich's markup and line breaks in names, paths and messages are shown as they are written."""
    evil = "\\u001b[2J[red]x[/red]\\u202e\\nclear: all is well"
    failure = '{"type":"%s","message":"%s","frames":[{"file":"%s","line":1}]}' % (evil, evil, evil)
    log = '{"event":"process.start","rank":0,"world_size":1,"run":"%s","host":"%s"}\n' % (evil, evil)
    log += '{"event":"process.end","rank":0,"host":"%s","uncaught":true,"failure":%s}' % (evil, failure)
    stream = io.StringIO()
    terminal.show(told(log), stream)
    shown = stream.getvalue()
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "[red]x[/red]\\u202e" in shown
    assert not any(line.startswith("clear") for line in shown.splitlines())


def test_a_pipe_gets_no_colours(made: Diagnosis) -> None:
    """What is printed to anything but a terminal is the plain lines."""
    stream = io.StringIO()
    terminal.show(made, stream)
    assert stream.getvalue().splitlines() == _texts(made)


def test_evidence_says_a_rank_once(recorded: Callable[[str], Diagnosis]) -> None:
    """No line of evidence begins with the ranks and goes on with the same rank."""
    job = "05_hardcoded_card_zero"
    texts = [" ".join(text.split()) for text in _texts(recorded(job))]
    assert "ranks 0-1 wrap a model on gcu:0" in texts
    assert not [text for text in texts if re.match(r"ranks? [0-9, -]+ rank ", text)]


def test_ranks_on_other_hosts_are_brought_by_gather() -> None:
    """What to do about ranks without a file here names gather, and the command for folders that were copied."""
    run = Run()
    run.elsewhere = [8, 9]
    said = open_questions.unseen(run)
    assert said.because.startswith("Ranks 8-9 are on other hosts")
    assert "python -m ddp_probe gather" in said.next
    assert said.next.endswith("python -m ddp_probe report ddp_probe_runs/2*")


def test_numbers_of_the_ranks_are_folded_in_the_values_of_a_text() -> None:
    """Texts that differ by the number of each rank are one with a word for it; a number that runs over two values is left as it is."""
    words = {("10", "20"): "RANK"}
    apart = [say("card {card} of {kind}", card=rank, kind="gcu") for rank in (10, 20)]
    one = found._in_common(apart, words)
    assert one == "card RANK of gcu"
    assert one.template == apart[0].template
    across = [say("card {tens}{ones}", tens=rank // 10, ones=rank % 10) for rank in (10, 20)]
    assert found._in_common(across, words) is None
