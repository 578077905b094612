"""watch folds ranks at the same place, puts those that stand out first, and prints one table in a pipe."""

import json
import os
import platform
import random
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable

import pytest
from ledger_books import Call, Phase, born, returned

from ddp_probe.reading import ledger_text, whole_ledger
from ddp_probe.showing.watch import position
from ddp_probe.showing.watch.watch_look import LiveView, Look
from ddp_probe.showing.watch_page import rows

MANY = 1024


@pytest.fixture
def shown(run_python: Callable[..., Any], folder: Path, tmp_path: Path) -> Callable[..., Any]:
    """Run the command on the run, with its output in a pipe."""
    return lambda *args: run_python(["-m", "ddp_probe", "watch", str(folder), *args], cwd=tmp_path)


def _look(folder: Path) -> Look:
    return LiveView([str(folder)]).look()


def test_ranks_at_the_same_place_share_a_row_and_the_odd_one_comes_first(book: Any, folder: Path) -> None:
    """Seven ranks that wait in a call are one row; the eighth is above them with the reason."""
    for rank in range(8):
        book(rank, *returned(1, 2), *([Phase("validate", site="/job/train.py:77:main")] if rank == 3 else [Call(seq=3)]))
    first, second = rows(_look(folder))
    assert (first.ranks, first.phase, first.call, first.site) == ([3], "validate", "after all_reduce 2", "/job/train.py:77")
    assert first.why == "is not in all_reduce 3, in which 7 ranks wait"
    assert (second.ranks, second.call, second.why) == ([0, 1, 2, 4, 5, 6, 7], "all_reduce 3", "")


def test_a_rank_in_no_call_is_shown_where_its_stacks_are(book: Any, folder: Path) -> None:
    """A rank that stands out is shown at the job's line of the stacks that it wrote since it moved last; older stacks say nothing."""
    told = (
        '{"event":"hang.suspected","phase":"point","ts":"%s","rank":%d,"threads":[{"name":"MainThread","main":true,"frames":'
        '[{"file":"/job/train.py","line":9,"function":"main"},{"file":"/job/data.py","line":55,"function":"wait"}]}]}'
    )
    for rank, ago in ((0, 5), (1, 300)):
        when = time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime(time.time() - ago))
        book(rank, *returned(1, group="0-3"), world=4, lines=[told % (when, rank)])
    for rank in (2, 3):
        book(rank, Call(seq=2, group="0-3"), world=4)
    lines = {each.rank: each.site and (each.site.file, each.site.line) for each in _look(folder).ranks}
    assert lines == {0: ("/job/data.py", 55), 1: ("/job/train.py", 40), 2: ("/job/train.py", 40), 3: ("/job/train.py", 40)}


@pytest.mark.parametrize("given", ["0", "x", "nan", "9999"])
def test_an_interval_out_of_range_is_refused(shown: Any, given: str) -> None:
    """--interval takes seconds between 0.1 and 3600; anything else is a mistake in the command line."""
    done = shown("--interval", given)
    assert (done.returncode, done.stdout) == (2, "")
    assert "is not a number of seconds between 0.1 and 3600" in done.stderr


def test_a_rank_of_another_host_is_taken_by_the_wall_clock(book: Any, folder: Path) -> None:
    """Its process cannot be checked from here, and its call has lasted as long as the two clocks of its file say."""
    book(0, Call(ago=30, group="0-1"), world=2, host="elsewhere")
    (only,) = _look(folder).ranks
    assert only.state == "on another host"
    assert 30 <= only.seconds < 90


def test_speed_is_counted_between_two_looks(book: Any, folder: Path) -> None:
    """The first look divides the steps by the life of the file, later ones the new steps by the time between."""
    made = book(0, Phase("backward", 50, ago=0.0), world=1, lived=10.0)
    live = LiveView([str(folder)])
    first = live.look().speed[0]
    made.phase(Phase("backward", 50, ago=0.0))
    made.write()
    still = live.look().speed[0]
    made.phase(Phase("backward", 60, ago=0.0))
    made.write(moved_ns=made.now + 5)
    later = live.look().speed[0]
    assert first is not None
    assert 0 < first <= 5
    assert (still, later is not None and later > 0) == (0.0, True)


@pytest.mark.parametrize("count", [0, 1, 5, 31, 32, 33, 2047, 2048, 2049, 2081, 7000])
def test_the_end_of_a_ledger_is_what_the_whole_says(book: Any, count: int) -> None:
    """However often the ring has gone round, the last records, groups and phases are those that the parser finds in the whole file."""
    path = str(book(0, Phase("backward", 3), *returned(*range(1, count + 1))).path)
    end, whole = position.Glimpses().of(path), whole_ledger.read(path, position.KEPT)
    assert end == whole
    assert [record.seq for record in end.records] == list(range(max(1, count - position.KEPT + 1), count + 1))


def test_a_torn_ledger_is_shown_as_far_as_it_goes(book: Any, folder: Path, shown: Any) -> None:
    """Cut anywhere, or with any bytes changed, a ledger leaves the other ranks as they are; what is missing is said."""
    for rank in range(4):
        book(rank, Call(group="0-3"), world=4)
    made, draw = book(2, *returned(*range(1, 3000)), Call(seq=3000, group="0-3"), world=4), random.Random(3)
    for cut in (0, 7, 200, 300, 70000, 100000):
        made.write(cut)
        look = _look(folder)
        assert look.problems
        assert {0, 1, 3} <= {each.rank for each in look.ranks}
    whole = bytes(made.data)
    for _ in range(60):
        changed = bytearray(whole)
        for _ in range(draw.randrange(1, 40)):
            changed[draw.randrange(draw.choice((256, 2000, len(whole))))] = draw.randrange(256)
        made.path.write_bytes(changed)
        assert {0, 1, 3} <= {each.rank for each in _look(folder).ranks}
    made.path.write_bytes(whole[:300])
    done = shown()
    assert (done.returncode, done.stderr) == (0, "")
    assert "bytes of the file are missing" in done.stdout


def test_a_ledger_that_grows_is_read_again(book: Any, folder: Path) -> None:
    """Each look shows what was written since the one before, also after many looks at a file at rest."""
    made = book(0, Call(seq=1, group="0"), world=1)
    live = LiveView([str(folder)])
    assert [live.look().ranks[0].number for _ in range(4)] == [1, 1, 1, 1]
    for seq in range(2, 6):
        made.call(Call(seq=seq, ago=10 - seq, group="0"))
        made.write()
        assert [live.look().ranks[0].number for _ in range(3)] == [seq, seq, seq]


def test_a_store_that_came_after_the_first_look_is_seen(book: Any, folder: Path) -> None:
    """A record whose time was in the header before the record itself was there is not missed for good."""
    made = book(0, Call(seq=1, group="0"), world=1)
    live = LiveView([str(folder)])
    moved = made.now
    made.write(moved_ns=moved)
    live.look()
    made.call(Call(seq=2, group="0"))
    made.write(moved_ns=moved)
    assert live.look().ranks[0].number == 2


def test_a_thousand_ranks_are_a_few_rows(book: Any, folder: Path, shown: Any) -> None:
    """1 024 ranks of which one is missing print two rows in 80 columns, at a third of the cost of reading full ledgers whole, and less at rest."""
    for rank in range(MANY):
        before = [1] * 2000 if rank < 10 else [1]  # Those that are read whole below have a ring that is full, as after a minute of training.
        book(rank, *returned(*before, 2, group="0-1023"), *([] if rank == 700 else [Call(seq=3, group="0-1023")]), world=MANY, lived=60.0)
    live = LiveView([str(folder)])
    spent = time.process_time()
    look = live.look()
    first = time.process_time() - spent
    live.look()
    spent = time.process_time()
    live.look()
    again = time.process_time() - spent
    spent = time.process_time()
    for each in folder.glob("rank0000*.ledger"):
        whole_ledger.read(each)
    whole = (time.process_time() - spent) / 10 * MANY
    print("1024 ranks: %.3f s, at rest %.3f s, whole files %.3f s" % (first, again, whole))
    assert first < whole / 3
    assert again < first
    assert set(look.outliers) == {700}
    done = shown()
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr, len(lines)) == (0, "", 5)
    assert max(map(len, lines)) <= 80
    assert "\x1b" not in done.stdout
    assert lines[2].startswith("> 700 ")
    assert "0-699, 701-1023" in lines[3]


def test_json_has_every_rank(book: Any, shown: Any) -> None:
    """--json prints one object with the fields that --help names."""
    for rank in range(3):
        book(rank, *([Call(seq=4, group="0-2", op="send", peer=2)] if rank else returned(3)), world=4)
    done = shown("--json")
    told = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert list(told) == ["run", "time", "over", "ranks", "absent", "problems"]
    assert (told["absent"], [each["rank"] for each in told["ranks"]]) == ([3], [0, 1, 2])
    assert told["ranks"][1]["peer"] == 2
    assert told["ranks"][0]["site"] == {"file": "/job/train.py", "line": 40, "function": "main"}
    help_page = shown("--help").stdout
    assert all(name in help_page for name in told["ranks"][0])


def test_an_ended_run_is_shown_as_it_ended(book: Any, shown: Any) -> None:
    """Of a run whose processes are all gone, the last place of each is shown, and nobody stands out for being gone."""
    for rank in range(2):
        book(rank, Call(seq=4, group="0-1"), world=2, since=7)
    done = shown("--once")
    assert done.returncode == 0
    assert "2 ranks, all ended" in done.stdout
    assert "gone" in done.stdout
    assert ">" not in done.stdout


def test_a_run_without_a_ledger_says_so(folder: Path, shown: Any) -> None:
    """It exits with 2 and says what to do instead."""
    (folder / "rank00000.node1.7.jsonl").write_text('{"event":"process.start","rank":0}\n', encoding="utf-8")
    done = shown()
    assert (done.returncode, done.stdout) == (2, "")
    assert "No ledger in " in done.stderr
    assert "what to do:" in done.stderr


def test_right_after_the_launch_it_waits_and_says_for_what(book: Any, folder: Path) -> None:
    """While the launcher runs and no rank has a log, it says what it waits for; the first ledger ends that."""
    head = '{"event":"launcher.start","phase":"point","ts":"2026-11-22T05:00:00.000000Z","pid":%d,"host":"%s","born":%d}\n'
    log = folder / ("launcher.%s.jsonl" % platform.node())
    log.write_text(head % (os.getpid(), platform.node(), born(os.getpid())), encoding="utf-8")
    command = [sys.executable, "-m", "ddp_probe", "watch", str(folder), "--once"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "ddp_probe: Waiting: no rank has imported torch yet. Ctrl-C ends this.\n"
        book(0, Call(group="0"), world=1)
        out, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "1 rank" in out


def test_a_rank_that_stands_makes_no_steps(folder: Path) -> None:
    """The first look tells the pace of the latest steps, and 0 for a rank whose next step lasts for several times as long."""
    lines = [
        "ledger 0-1 backward at /job/train.py:12 x60",
        "ledger 0-1 step x60 forward 50 backward 30",
        "ledger 0-1 barrier at /job/train.py:20 open",
    ]
    for rank, data in ledger_text.written(lines, start=time.time() - 100).items():
        (folder / ("rank%05d.node1.7.ledger" % rank)).write_bytes(data)
    (folder / "rank00000.node1.7.jsonl").write_text('{"event":"process.start","rank":0}\n', encoding="utf-8")
    assert set(_look(folder).speed.values()) == {0.0}


def test_time_waited_is_that_of_the_last_minute(folder: Path, shown: Callable[..., Any]) -> None:
    """All 256 steps of the ring are added up; they reach back 25 s, and the table says so. Those of more than a minute ago say nothing."""
    lines = ["ledger 0 step x300 forward 50 backward 50", "ledger 1 step x300 forward 90 backward 10"]
    (folder / "rank00000.node1.7.jsonl").write_text('{"event":"process.start","rank":0}\n', encoding="utf-8")
    for rank, data in ledger_text.written(lines, start=time.time()).items():
        (folder / ("rank%05d.node1.7.ledger" % rank)).write_bytes(data)
    waited = _look(folder).waited
    assert {rank: (round(one.share, 2), round(one.seconds, 1)) for rank, one in waited.items()} == {0: (0.4, 25.5), 1: (0.0, 25.5)}
    assert "40% of 25s" in shown().stdout
    told = json.loads(shown("--json").stdout)["ranks"]
    assert [(each["waited"], round(each["waited_of"], 1)) for each in told] == [(0.4, 25.5), (0.0, 25.5)]
    for rank, data in ledger_text.written(lines, start=time.time() - 95).items():
        (folder / ("rank%05d.node1.7.ledger" % rank)).write_bytes(data)
    assert _look(folder).waited == {}


def test_no_run_at_all_says_so(run_python: Any, tmp_path: Path, clean_env: Any) -> None:
    """Without any run, and without a job on this host that could be looked at from outside, it exits with 2 and says how to get one."""
    (tmp_path / "proc").mkdir()
    code = "import sys; from ddp_probe.reading import proc_files; from ddp_probe.cli import main; proc_files.ROOT = 'proc'; sys.exit(main(['watch']))"
    done = run_python(code, cwd=tmp_path, env=clean_env())
    assert (done.returncode, done.stdout) == (2, "")
    assert "No run found." in done.stderr


def test_without_a_name_a_run_that_runs_comes_before_a_newer_one_that_has_ended(book: Any, folder: Path, run_python: Any, clean_env: Any) -> None:
    """A job that hangs has written its logs longer ago than a job that has ended since."""
    born = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[19]
    book(0, Call(group="0"), world=1)
    log = next(folder.glob("*.jsonl"))
    log.write_text(log.read_text(encoding="utf-8").replace("}\n", ',"born":%s}\n' % born), encoding="utf-8")
    other = folder.parent / "run-2"
    other.mkdir()
    later = other / "rank00000.node1.7.jsonl"
    later.write_text('{"event":"process.start","rank":0,"pid":1}\n{"event":"process.end","rank":0,"exit_code":0}\n', encoding="utf-8")
    os.utime(str(log), (1, 1))
    done = run_python(["-m", "ddp_probe", "watch"], env=clean_env(DDP_PROBE_DIR=str(folder.parent)))
    assert (done.returncode, done.stderr) == (0, "")
    assert "run-1, 1 rank" in done.stdout


_HELD = '{"event":"device.state","phase":"point","ts":"2026-11-22T05:00:01.000000Z","rank":%d,"devices":[{"device":"gcu:%d","allocated":%d}]}'


def test_memory_is_that_of_the_last_device_state(book: Any, folder: Path, shown: Callable[..., Any]) -> None:
    """The row of a place has the memory of the rank that holds the most there; a log that has grown is read again."""
    for rank in range(2):
        book(rank, *returned(3, group="0-1"), world=2, lines=[_HELD % (rank, rank, (rank + 1) << 30)])
    live = LiveView([str(folder)])
    assert [row.memory for row in rows(live.look())] == [2 << 30]
    assert "2.0 GiB" in shown().stdout
    log = next(folder.glob("rank00000.*.jsonl"))
    log.write_text(log.read_text() + _HELD % (0, 0, 5 << 30) + "\n")
    with open(str(log), "ab") as damaged:
        damaged.write((_HELD % (0, 0, 7 << 30)).encode().replace(b"gcu:", b"\xbf\xff") + b"\n")
    assert live.look().memory == {0: 5 << 30, 1: 2 << 30}
    assert [each["memory"] for each in json.loads(shown("--json").stdout)["ranks"]] == [5 << 30, 2 << 30]
    for path in folder.glob("*.jsonl"):
        path.write_text("")
    assert "memory" not in shown().stdout


def test_cards_are_asked_by_watch_itself(book: Any, folder: Path, run_python: Callable[..., Any], clean_env: Any, tmp_path: Path) -> None:
    """With --cards each look asks the tool on PATH: a line for each card, and with --json the same as data; without it, none."""
    book(0, *returned(3, group="0-0"), world=1)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "nvidia-smi").symlink_to(Path(__file__).resolve().parent.parent / "accelerator" / "tools" / "efsmi")
    (tmp_path / "cards").write_text("3 90 2048 4711 hw_thermal\n")
    env = clean_env(PATH="%s:%s" % (tmp_path / "bin", os.environ["PATH"]), CARDS_AT=str(tmp_path / "cards"))

    def said(*arguments: str) -> str:
        return str(run_python(["-m", "ddp_probe", "watch", str(folder), *arguments], env=env, cwd=tmp_path).stdout)

    (line,) = [line for line in said("--cards").splitlines() if "4711" in line]
    assert line.split() == ["3", "90", "%", "2.0", "GiB", "of", "32.0", "GiB", "92", "°C", "4711", "hw_thermal"]
    told = json.loads(said("--cards", "--json"))["cards"]
    assert (told["tool"], told["cards"][3]["utilisation"], told["cards"][3]["processes"]) == ("nvidia-smi", 90.0, {"4711": 2 << 30})
    assert "4711" not in said()
    assert "cards" not in json.loads(said("--json"))


def test_metrics_for_a_textfile_collector(book: Any, folder: Path, shown: Callable[..., Any], tmp_path: Path) -> None:
    """Each rank has its steps, its last movement, its state and whether it stands out, in lines of Prometheus; the file is replaced by rename."""
    for rank in range(8):
        book(rank, *returned(1, 2), *([Phase("validate", site="/job/train.py:77:main")] if rank == 3 else [Call(seq=3)]))
    target = tmp_path / "job.prom"
    target.write_text("old\n", encoding="utf-8")
    before = target.stat().st_ino
    done = shown("--prometheus", target, "--once")
    assert (done.returncode, done.stdout) == (0, "")
    text = target.read_text(encoding="utf-8")
    form = re.compile(r'(# (HELP|TYPE) [a-z_]+ .+|[a-z_]+\{run="run-1"(,[a-z]+="[^"\n]*")*\} -?[0-9]+(\.[0-9]+)?)\Z')
    assert [line for line in text.splitlines() if not form.match(line)] == []
    values = {line.rsplit(" ", 1)[0]: float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if not line.startswith("#")}
    named = [name for name, value in values.items() if name.startswith("ddp_probe_rank_stands_out") and value]
    assert ['rank="3"' in name for name in named] == [True]
    looked = values['ddp_probe_look_timestamp_seconds{run="run-1"}']
    moved = [value for name, value in values.items() if name.startswith("ddp_probe_rank_moved")]
    assert len(moved) == 8
    assert all(0 < value <= looked for value in moved)
    assert target.stat().st_ino != before
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("job")] == ["job.prom"]
    assert shown("--prometheus", tmp_path / "job.txt", "--once").returncode == 2
