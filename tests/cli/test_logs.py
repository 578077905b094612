"""logs prints the events of all ranks by time: readable for a person, byte for byte for grep and jq."""

import json
import os
import random
import re
import shutil
import subprocess
import sys

import pytest
from schedule import seed
from terminal import in_terminal

from ddp_probe.cli import main
from ddp_probe.reading import whole_ledger

RUN = "03_model_on_cpu_on_one_rank"


@pytest.fixture
def recorded(repo):
    """The folder of a recorded run of two ranks, one of which fails."""
    return repo / "tests" / "recorded" / "new" / RUN


@pytest.fixture
def logs(run_python, tmp_path):
    """Run the command in an empty folder."""

    def run(*args, **kwargs):
        return run_python(["-m", "ddp_probe", "logs", *args], cwd=tmp_path, **kwargs)

    return run


@pytest.fixture
def made(tmp_path):
    """Write files of a run, each a list of lines."""

    def make(**files):
        for name, lines in files.items():
            (tmp_path / "run").mkdir(exist_ok=True)
            (tmp_path / "run" / (name + ".node1.1.jsonl")).write_bytes(b"".join(lines))
        return tmp_path / "run"

    return make


def event(second, rank=0, **fields):
    """Return a line at a second of the hour."""
    body = {"event": "device.set", "phase": "point", "ts": "2026-11-21T18:%02d:%02d.500000Z" % divmod(second, 60), "rank": rank, **fields}
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"


def test_all_ranks_and_launchers_are_merged_by_time(logs, recorded, read_events):
    """Every event of every file, coverage aside, and each record of a ledger is one line, in the order of their times, the launcher's among them."""
    done = logs(recorded)
    lines = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    records = sum(len(whole_ledger.read(path).records) for path in recorded.glob("*.ledger.txt"))
    assert len(lines) == records + len([one for one in read_events(recorded) if one["event"] != "probe.coverage"])
    assert records
    times = [line.split(" ", 1)[0] for line in lines]
    assert times == sorted(times)
    assert {line.split()[1] for line in lines} == {"r0", "r1", "L"}


def test_in_a_pipe_a_line_is_whole(logs, recorded):
    """A line tells the time, the rank, the event with its phase, the failure's text and the line of the job, uncut."""
    (line,) = [line for line in logs(recorded, "--rank", "1", "--event", "ddp.init").stdout.splitlines() if "begin" in line]
    assert " r1    ddp.init begin  " in line
    assert "4 parameters on cpu" in line
    assert line.endswith("/train/%s.py:25" % RUN)
    (failed,) = logs(recorded, "--rank", "1", "--event", "process.end").stdout.splitlines()
    assert "output_device None, and module parameters {device(type='cpu')}." in failed


@pytest.mark.parametrize("columns", [60, 80, 132])
def test_in_a_terminal_a_line_is_as_wide_as_it(recorded, clean_env, columns):
    """No line is wider than the terminal, and a call keeps the end of its line of the job."""
    code, seen = in_terminal(["logs", str(recorded)], clean_env(COLUMNS=None), columns)
    assert code == 0
    lines = re.sub(r"\x1b\[[\d;]*m", "", seen).splitlines()  # A colour takes no column.
    assert max(len(line) for line in lines) <= columns
    assert next(line for line in lines if "ddp.init begin" in line).endswith("_rank.py:25")


def test_in_a_pipe_a_line_is_as_wide_as_asked(logs, recorded):
    """-w cuts what goes to `less`, as a terminal would, and nothing without it."""
    wide, cut = (logs(recorded, *words).stdout.splitlines() for words in ((), ("-w", "72")))
    assert len(wide) == len(cut)
    assert max(map(len, cut)) <= 72 < max(map(len, wide))


@pytest.mark.parametrize("width", ["39", "-1", "wide", "1e3", ""])
def test_a_width_is_a_number_of_columns(logs, recorded, width):
    """Anything else is refused in two lines, with what to write."""
    done = logs(recorded, "-w", width)
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "%r is not a valid width." % width,
        "  what to do: Write -w and a number of columns, 40 at least.",
    ]


def test_raw_is_byte_for_byte(recorded, clean_env):
    """--raw prints the very lines of the logs, and besides the records of ledgers alone."""
    command = [sys.executable, "-m", "ddp_probe", "logs", str(recorded), "--raw"]
    done = subprocess.run(command, env=clean_env(), capture_output=True, timeout=60, check=True)
    written = [line for file in recorded.glob("*.jsonl") for line in file.read_bytes().splitlines(keepends=True)]
    assert sorted(line for line in done.stdout.splitlines(keepends=True) if not line.startswith(b'{"event":"ledger.')) == sorted(written)


def test_ranks_events_and_times_are_chosen(logs, made):
    """--rank takes lists and spans, --event names and patterns, --since a time of day, a date or a span back from the last event."""
    run = made(**{"rank%05d" % rank: [event(rank * 10, rank), event(rank * 10 + 1, rank, event="ddp.init")] for rank in range(6)})

    def shown(*args):
        return [line.split()[0][3:8] + " " + line.split()[1] for line in logs(run, *args).stdout.splitlines()]

    assert shown("--rank", "1,3-4", "--event", "ddp.*") == ["00:11 r1", "00:31 r3", "00:41 r4"]
    assert shown("--rank", "1", "--rank", "5", "--event", "device.set") == ["00:10 r1", "00:50 r5"]
    assert shown("--since", "-1s") == shown("--since", "18:00:50") == shown("--since=2026-11-21T18:00:50Z") == ["00:50 r5", "00:51 r5"]
    assert shown("--since", "-10.5s", "--event", "ddp.init") == ["00:41 r4", "00:51 r5"]


def test_nothing_that_matches_is_said_with_what_there_is(logs, made):
    """If nothing matches, stdout is empty, stderr names the existing ranks and events, and the exit code is 0."""
    run = made(rank00000=[event(1)], rank00001=[event(2, 1)])
    done = logs(run, "--event", "ddp.init")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "No event matches. These 2 files contain: ranks 0-1; device.set.\n"
    assert logs(run, "--rank", "7").stderr == "No such rank. These 2 files contain: ranks 0-1.\n"


def test_what_cannot_be_read_is_counted(logs, made):
    """A torn last line, lines that are not events and a line over the limit are skipped and counted on stderr."""
    long = b'{"event":"' + b"x" * (2 << 20) + b'"}\n'
    run = made(rank00000=[event(1), b"nonsense\n", b"[1]\n", b"\n", long, event(2)[:-9]], rank00001=[event(3, 1)])
    done = logs(run)
    assert len(done.stdout.splitlines()) == 2
    assert done.stderr == "Lines skipped: 1 empty, 1 longer than 1 MiB, 2 not an event, 1 torn, in 1 file.\n"


def test_events_of_another_version_are_shown(logs, made):
    """An event that this version does not know, and a known one whose fields have other types, are lines like any other."""
    run = made(rank00000=[event(1, event="moon.phase", illumination=[1, 2]), event(2, rank="seven", mono_ns="late")])
    done = logs(run)
    assert "moon.phase" in done.stdout
    assert "illumination=[1, 2]" in done.stdout
    assert len(done.stdout.splitlines()) == 2


def test_text_of_a_log_steers_no_terminal(logs, made, clean_env):
    """Escapes, line breaks and directional marks of a log come out as visible text; --raw does so in a terminal, and copies bytes into a pipe."""
    run = made(rank00000=[event(1, device="\x1b[2J\x9b31m\u202egnp.exe\x07\nr9 fake"), '{"event":"probe.warning","text":"\u202e\x9b2J"}\n'.encode()])
    printed = logs(run).stdout
    assert len(printed.splitlines()) == 2
    assert not any(char in printed for char in "\x1b\x9b\x07\u202e")
    code, shown = in_terminal(["logs", str(run), "--raw"], clean_env(COLUMNS=None), 80)
    assert code == 0
    assert not any(char in shown for char in "\x1b\x9b\u202e")


def test_a_reader_that_has_seen_enough_ends_it_quietly(clean_env, tmp_path):
    """A closed pipe ends the command without a word."""
    lines = event(1) * 20000
    (tmp_path / "rank00000.node1.1.jsonl").write_bytes(lines)
    process = subprocess.Popen(
        [sys.executable, "-m", "ddp_probe", "logs", str(tmp_path)], env=clean_env(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(60) == 141


def test_more_files_than_descriptors(made, run_python):
    """A run with more files than a process may open is read too."""
    run = made(**{"rank%05d" % rank: [event(rank % 50, rank)] for rank in range(200)})
    code = "import resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)); from ddp_probe import cli; sys.exit(cli.main(sys.argv[1:]))"
    done = run_python(["-c", code, "logs", str(run)])
    assert (done.returncode, done.stderr, len(done.stdout.splitlines())) == (0, "", 200)


@pytest.mark.parametrize(
    ("args", "what"),
    [
        (("--rank", "one"), "'one' is not a valid rank."),
        (("--since", "yesterday"), "'yesterday' is not a valid time."),
        (("nowhere",), "No such file or folder: nowhere."),
        (("plain.log",), "plain.log was not written by the probe."),
    ],
)
def test_a_mistake_is_usage(logs, made, tmp_path, args, what):
    """What cannot be understood or found is exit code 2, with one line what and one line what to do."""
    (tmp_path / "plain.log").write_text("epoch 1\n", encoding="utf-8")
    done = logs(*(args if args[0][0] != "-" else (made(rank00000=[event(1)]), *args)))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[0] == what
    assert done.stderr.splitlines()[-1].startswith("  what to do: ")


def test_a_run_is_found_by_its_name(logs, tmp_path):
    """Without a path it is the newest run; a bare name is a run of the folder that collects them."""
    for name, second in (("first", 1), ("second", 2)):
        folder = tmp_path / "ddp_probe_runs" / name
        folder.mkdir(parents=True)
        (folder / "rank00000.node1.1.jsonl").write_bytes(event(second))
        os.utime(str(folder / "rank00000.node1.1.jsonl"), (second, second))
    assert logs().stdout.startswith("18:00:02")
    assert logs("first").stdout.startswith("18:00:01")


def test_coverage_is_shown_where_it_is_asked_for(logs, made):
    """What the probe covered is left out, unless --event names it or the lines are wanted as they were written."""
    run = made(rank00000=[event(1), event(2, event="probe.coverage", target="torch.load")])
    assert "probe.coverage" not in logs(run).stdout
    assert "probe.coverage" in logs(run, "--event", "probe.*").stdout
    assert "probe.coverage" in logs(run, "--raw").stdout


def test_errors_are_what_failed(logs, made):
    """--errors shows calls that failed, ends with an exit code, children that a signal ended, and warnings; nothing else."""
    failed = {"phase": "error", "failure": {"type": "ValueError", "message": "no"}}
    warned = event(3, event="probe.warning", text="about to fail")
    run = made(
        rank00000=[event(1), event(2, event="ddp.init", **failed), warned, event(4, event="process.end")],
        rank00001=[event(5, 1, event="process.end", exit_code=3)],
        launcher=[event(6, None, event="launcher.child", signal="SIGKILL"), event(7, None, event="launcher.end")],
    )
    lines = logs(run, "--errors").stdout.splitlines()
    assert [line.split()[2] for line in lines] == ["ddp.init", "probe.warning", "process.end", "launcher.child"]
    assert len(logs(run, "--errors", "--event", "ddp.*").stdout.splitlines()) == 1


def test_following_ends_with_the_job(made, clean_env):
    """--follow prints what is there, then each line that is added, of files that come later too and never half of one, and ends with the job."""
    run = made(rank00000=[event(1)])
    command = [sys.executable, "-m", "ddp_probe", "logs", str(run), "--follow"]
    process = subprocess.Popen(command, env=clean_env(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline().startswith("18:00:01")
    with open(run / "rank00000.node1.1.jsonl", "ab") as file:
        file.write(event(2)[:20])
        file.flush()
        made(rank00001=[event(3, 1)])
        assert process.stdout.readline().split()[:2] == ["18:00:03.500Z", "r1"]
        file.write(event(2)[20:] + event(4, event="process.end"))
    assert process.stdout.readline().startswith("18:00:02")
    made(rank00001=[event(3, 1), event(5, 1, event="process.end")])
    assert [line.split()[0] for line in process.stdout] == ["18:00:04.500Z", "18:00:05.500Z"]
    assert (process.stderr.read(), process.wait(60)) == ("", 0)
    process.stdout.close()
    process.stderr.close()


def test_lines_of_the_jobs_own_are_shown_by_time(logs, recorded, tmp_path):
    """A *.jsonl file of the job's in the run's folder, as structlog writes it, is shown among the events; what is not an event is counted."""
    shutil.copytree(recorded, tmp_path / "run")
    first = min(json.loads(path.read_text().splitlines()[0])["ts"] for path in (tmp_path / "run").glob("rank*.jsonl"))
    own = [
        json.dumps({"event": "the first of all", "timestamp": 1.5}),
        json.dumps({"loss": 0.5, "rank": 1, "event": "epoch done", "timestamp": first}),
        json.dumps({"event": "no rank here", "timestamp": first.replace("Z", "+00:00")}),
        "no event at all",
    ]
    (tmp_path / "run" / "app.jsonl").write_text("\n".join(own) + "\n")
    done = logs(str(tmp_path / "run"))
    lines = done.stdout.splitlines()
    (place,) = [number for number, line in enumerate(lines) if "epoch done" in line]
    assert "r1" in lines[place]
    assert "loss=0.5" in lines[place]
    assert 0 < place < len(lines) - 1
    assert [line.split()[1] for line in lines if "no rank here" in line] == ["job"]
    assert "the first of all" in lines[0]
    assert "Lines skipped: 1 not an event, in 1 file." in done.stderr
    alone = logs("--rank", "0", str(tmp_path / "run")).stdout
    assert "epoch done" not in alone
    assert "process.start" in alone


def test_logs_follows_to_the_end_beside_a_log_of_the_jobs(logs, recorded, tmp_path):
    """--follow ends once every process has, although the job's own log has no last line."""
    shutil.copytree(recorded, tmp_path / "run")
    (tmp_path / "run" / "app.jsonl").write_text('{"event": "mine", "timestamp": 1.0}\n')
    done = logs("--follow", str(tmp_path / "run"), timeout=60)
    assert done.returncode == 0
    assert " mine" in done.stdout


def test_any_bytes_are_shown_or_counted(recorded, tmp_path, capfdbinary):
    """Whichever bytes of a log are other ones, logs shows what it can in each form, says which lines are damaged, and never ends with a traceback."""
    draw = random.Random(seed())
    run = tmp_path / "run"
    shutil.copytree(recorded, run)
    log = sorted(run.glob("rank*.jsonl"))[0]
    data, damaged = log.read_bytes(), 0
    for _ in range(80):
        changed = bytearray(data)
        for _ in range(draw.choice((1, 1, 3, 30))):
            changed[draw.randrange(len(changed))] = draw.randrange(256)
        log.write_bytes(changed)
        for form in ([], ["--raw"], ["--errors"]):
            assert main(["logs", *form, str(run)]) in (0, 1, 3)
        damaged += capfdbinary.readouterr().out.count(b"damaged=the rest of the line is not valid JSON")
    assert damaged
