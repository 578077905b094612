"""The bench counts right, and one row of it is measured for real."""

import importlib.machinery
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest


@pytest.fixture
def bench(repo: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """scripts/bench as a module, taken out of sys.modules afterwards."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    loader = importlib.machinery.SourceFileLoader("bench_program", str(repo / "scripts" / "bench"))
    spec = importlib.util.spec_from_loader("bench_program", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loader.exec_module(module)
    yield module
    for name in [name for name in sys.modules if name.split(".")[0] in ("bench_parts", "placement_cost", "simulate_parts")]:
        del sys.modules[name]


def _row(bench: Any, kind: str, goal: Any, off: Any, on: Any) -> Any:
    rows = bench.rows
    question = rows.Question("key", "a | row", kind, "ms", goal, "how.", "why.")
    return rows.answer(question, [rows.Sample(value, value) for value in off], [rows.Sample(value, 2 * value) for value in on])


@pytest.mark.parametrize(("kind", "value"), [("ratio", 1.5), ("difference", 5.0), ("cost", 15.0)])
def test_a_result_is_taken_from_the_minima(bench: Any, kind: str, value: float) -> None:
    """A slow outlier on either side does not change a result, whatever its kind."""
    row = _row(bench, kind, None, [10.0, 900.0, 11.0], [800.0, 15.0, 16.0])
    assert row["wall"]["result"] == row["result"] == value


def test_the_spread_is_of_rounds_and_not_of_sides(bench: Any) -> None:
    """A machine that slows down for both sides alike leaves the ratio of each round, and so its spread, alone."""
    row = _row(bench, "ratio", None, [10.0, 20.0, 40.0, 80.0], [11.0, 22.0, 44.0, 88.0])
    assert row["wall"]["paired"]["low"] == row["wall"]["paired"]["high"] == pytest.approx(1.1)
    assert row["wall"]["on"]["median"] == 33.0


@pytest.mark.parametrize(("on", "met", "gross"), [(10.0, True, False), (19.0, False, False), (21.0, False, True)])
def test_a_gross_regression_is_twice_the_goal(bench: Any, on: float, met: bool, gross: bool) -> None:
    """A result over its goal is not met, and gross only beyond a factor of two."""
    row = _row(bench, "cost", 10.0, [], [on])
    assert (row["met"], row["gross"]) == (met, gross)


def test_the_short_form_measures_again_what_misses_by_far(bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part that misses its goal by far is measured once more; what was well the first time keeps its number."""
    measured = {number: iter(range(9)) for number in (0, 1)}

    def part(number: int, slow: int) -> Any:
        count = next(measured[number])
        return [_row(bench, "cost", 10.0, [], [on]) for on in (float(count + 1), 25.0 if count < slow else 19.0)]

    monkeypatch.setattr(bench, "_PAUSE", 0)
    monkeypatch.setattr(bench, "parts", lambda rounds, short: [lambda folder: part(0, 1), lambda folder: part(1, 99)])
    for short, results, counts in ((True, [1.0, 19.0, 1.0, 25.0], (2, 2)), (False, [3.0, 19.0, 3.0, 25.0], (3, 3))):
        rows = list(bench.measure(tmp_path, bench.SHORT, short))
        assert [row["result"] for row in rows] == results
        assert [row["gross"] for row in rows] == [False, False, False, True]
        assert tuple(next(measured[number]) for number in (0, 1)) == counts
        measured.update({number: iter(range(count, 9)) for number, count in enumerate(counts)})


def test_a_noisy_machine_decides_nothing(bench: Any) -> None:
    """Where two equal jobs are farther apart than the goal, a step is neither met nor missed, and the row says so."""
    row = _row(bench, "ratio", 1.005, [10.0], [9.0])
    bench.steps.undecided(row, 1.004)
    assert (row["met"], row["note"]) == (True, "")
    bench.steps.undecided(row, 0.97)
    assert row["met"] is None
    assert "3.0 % apart" in row["note"]


def test_variants_take_turns(bench: Any) -> None:
    """Each round runs every variant once, the first variant changes from round to round, and warm rounds do not count."""
    ran = []

    def variant(name: str) -> Callable[[], Any]:
        return lambda: ran.append(name) or bench.rows.Sample(len(ran), 0.0)

    found = bench.rows.interleave({"a": variant("a"), "b": variant("b")}, rounds=2, warm=1)
    assert ran == ["a", "b", "b", "a", "a", "b"]
    assert [[sample.wall for sample in samples] for samples in (found["a"], found["b"])] == [[4, 5], [3, 6]]


def test_a_goal_that_is_not_met_is_explained(bench: Any) -> None:
    """The page names a missed goal with its number and its reason, and a row without a number says why."""
    missing = bench.rows.unanswered(bench.rows.Question("key", "another", "ratio", "ms", 1.0, "how."), "Not measured: no torch.")
    known = {"cpu": "a processor", "cores": 2, "python": "3.8", "torch": "", "mmengine": "", "wrapt": "1", "msgspec": ""}
    found = {"machine": {**known, "load_before": "0.1", "load_after": "0.2"}, "rows": [_row(bench, "cost", 10.0, [], [12.5]), missing]}
    text = bench.page.page(found)
    assert "| a \\| row | ≤ 10.00 ms | 12.50 ms | not met |" in text
    assert "- **a \\| row**: 12.50 ms measured, the goal is 10.00 ms. why." in text
    assert "Not measured: no torch." in text
    assert "another  " in bench.page.terminal(found)


def test_the_page_is_printed_from_what_was_measured(bench: Any, repo: Path) -> None:
    """performance.md is what performance.json says, which names no host, no folder and no date."""
    folder = repo / "docs" / "contributing"
    text = (folder / "performance.json").read_text(encoding="utf-8")
    assert bench.page.page(json.loads(text)) == (folder / "performance.md").read_text(encoding="utf-8")
    assert sorted(json.loads(text)) == ["machine", "rows"]
    assert not any(word in text for word in ("/home/", "/root/", "/tmp/", "hostname"))


def test_a_row_is_measured(bench: Any, tmp_path: Path) -> None:
    """One event is written and timed: the whole line costs more than its system calls, as soon as another program lets it be seen."""
    found = []
    for _ in range(20):
        event, span, write, _ = bench.inside.event_rows(tmp_path, 3)
        assert event["wall"]["off"] is None
        found.append((write["result"], event["result"], span["result"]))
        if 0 < found[-1][0] < found[-1][1] < found[-1][2]:
            return
    raise AssertionError(found)


@pytest.mark.slow
def test_the_analyser_of_torch_is_given_what_it_accepts(bench: Any, tmp_path: Path) -> None:
    """Torch's analyser reads every entry that the writer made of the ledgers, and parts the ranks as ours does, whichever side it blames."""
    pytest.importorskip("torch.distributed.flight_recorder")
    run, dumps, written = bench.analyser._write(tmp_path, 8, 40, 5)
    theirs, ours = bench.analyser._side("torch", dumps), bench.analyser._side("ledgers", run)
    assert [bench.analyser._wrong(found, 5, 8, written) for found in (theirs, ours)] == ["", ""]
    assert theirs["matched"] == written - 8  # all entries but the eight at which the ranks part
    assert "it answered" in bench.analyser._wrong(theirs, 4, 8, written)
    assert "it answered" in bench.analyser._wrong(dict(ours, read=written - 1), 5, 8, written)


def test_a_step_pays_for_its_records_and_phases(bench: Any) -> None:
    """The ledger's share of a step is its records and phases, with one more of each, times their costs, by the time of the step."""
    cost = bench.steps.ledger_rows.__globals__
    share, question = cost["share_of"](cost["Step"](4.0, 2.0), 2.0, 1.0, 2600.0)
    assert share == pytest.approx(0.5)
    assert "4.00 records, 2.00 phases" in question.how


def test_instructions_are_those_of_the_turns_alone(bench: Any, tmp_path: Path) -> None:
    """Two loops of different lengths give the instructions of one turn; what each of them takes around its turns drops out."""
    for number, (times, count) in enumerate([(40, 1_000_000 + 40 * 25_000), (120, 1_000_000 + 120 * 25_000)]):
        (tmp_path / ("out.%d" % number)).write_text("desc: Trigger: dump record.%d\n\nevents: Ir\nsummary: %d\n" % (times, count))
    (tmp_path / "out.9").write_text("desc: Trigger: Program termination\nsummary: 7\n")
    assert bench.ledger_cost.counted_in(tmp_path) == {"record": 25.0}


def test_a_job_that_dies_is_told_with_its_signal(bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rank that ends before it is told to is a row without a number that says how it ended."""
    program = tmp_path / "job.py"
    program.write_text("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    monkeypatch.setattr(bench.steps, "__file__", str(tmp_path / "steps.py"))
    (row,) = bench.steps.step_rows(tmp_path, 1, 1, others=False)
    assert row["result"] is None
    assert "killed by SIGKILL" in row["note"]


def test_what_was_measured_is_printed_again(repo: Path, tmp_path: Path, clean_env: Callable[..., Any]) -> None:
    """--from prints a file without measuring, and --short exits 1 where it holds a gross regression."""
    found = json.loads((repo / "docs" / "contributing" / "performance.json").read_text(encoding="utf-8"))
    for gross, code in ((False, 0), (True, 1)):
        found["rows"][0]["gross"] = gross
        (tmp_path / "found.json").write_text(json.dumps({**found, "rows": found["rows"][:1]}), encoding="utf-8")
        command = [sys.executable, str(repo / "scripts" / "bench"), "--short", "--from", str(tmp_path / "found.json")]
        done = subprocess.run(command, env=clean_env(PYTHONIOENCODING="utf-8"), capture_output=True, timeout=60, check=False)
        assert done.returncode == code, done.stderr
        assert ("over its goal" in done.stderr.decode()) == gross


def test_growth_leaves_the_start_out(bench: Any) -> None:
    """A cost with a constant share grows by 1.0 if each rank costs the same, by more if later ranks cost more, and is unknown if noise is larger."""
    result = [next(bench.scale.growth("a", "s", costs))["result"] for costs in ({64: 5.64, 256: 7.56, 1024: 15.24}, {64: 1.0, 128: 2.0, 256: 8.0})]
    assert result == [pytest.approx(1.0), pytest.approx(3.0)]
    assert next(bench.scale.growth("a", "s", {1: 2.0, 2: 1.0, 3: 4.0}))["result"] is None
    assert not list(bench.scale.growth("a", "s", {1: 1.0, 2: 2.0}))


def test_the_page_has_a_line_for_each_number_of_ranks(bench: Any) -> None:
    """What is measured over many sizes becomes a table of its own, with the sizes in order, and is explained once."""
    found = {"machine": {"cpu": "a processor", "cores": 2, "python": "3.8", "load_before": "0.1", "load_after": "0.2"}, "rows": []}
    for ranks in (1024, 64):
        row = _row(bench, "cost", None, [], [float(ranks)])
        found["rows"].append({**row, "series": "report", "ranks": ranks, "what": "%d ranks: report" % ranks})
    text = bench.page.page(found)
    assert "| ranks | report (ms) |\n|---:|---:|\n| 64 | 64.00 |\n| 1024 | 1024.00 |\n" in text
    assert text.count("- **report**: how.") == 1
    assert "64 ranks: report" not in text


@pytest.mark.slow
def test_a_size_is_measured(bench: Any, tmp_path: Path) -> None:
    """Reports over logs and over ledgers, and the launcher's verdict, name the guilty rank of sixteen."""
    rows = list(bench.scale.scale_rows(tmp_path, 1, [16]))
    assert len(rows) == 9
    assert all(row["result"] and row["ranks"] == 16 and not row["note"] for row in rows), rows
    assert not (tmp_path / "runs").exists()


@pytest.mark.slow
def test_folds_are_measured(bench: Any, tmp_path: Path) -> None:
    """A report over the folds of two hosts names the guilty rank; time, memory, bytes and the gain of all cores are told."""
    rows = [*bench.folds.fold_rows(tmp_path / "folds", 16), *bench.folds.core_rows(tmp_path / "cores", 1, 16)]
    assert [row["unit"] for row in rows] == ["s", "MiB", "KiB", "s"]
    assert all(row["result"] and not row["note"] for row in rows), rows
    assert not list(tmp_path.glob("*/runs"))
