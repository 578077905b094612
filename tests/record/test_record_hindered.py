"""Full disks, removed folders, closed descriptors and planted links: the job goes on, and no file but ours is touched."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest

from ddp_probe.shared import schema
from ddp_probe.traced.record import Recorder, writer

Make = Callable[..., Recorder]
Lines = Callable[[Any], List[Dict[str, Any]]]
Program = Callable[..., Any]
Files = Callable[[], List[Path]]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A failed write is tried again at once."""
    monkeypatch.setattr(writer, "_BACK_OFF", 0.0)


def _complaints(text: str) -> List[str]:
    return [line for line in text.splitlines() if line.startswith("ddp_probe:")]


def test_a_file_in_place_of_the_folder(make: Make, tmp_path: Path, lines_of: Lines, capfd: Any, impatient: None) -> None:
    """Events are counted as lost, said once, and come back with process.start first once the way is free."""
    (tmp_path / "run").write_text("mine", encoding="utf-8")
    recorder = make()
    recorder.point(schema.SetDevice())
    recorder.begin(schema.Load()).end()
    assert (recorder.lines, recorder.lost, recorder.path) == (0, 3, None)
    out, err = capfd.readouterr()
    lost = "Training goes on; events are lost from here. Set DDP_PROBE_DIR to a folder that can be written to."
    assert err == "ddp_probe: rank 3 cannot write %s: File exists. %s\n" % (tmp_path / "run", lost)
    assert (tmp_path / "run").read_text(encoding="utf-8") == "mine"
    (tmp_path / "run").unlink()
    recorder.point(schema.SetDevice())
    assert [line["event"] for line in lines_of(recorder.path)] == ["process.start", "device.set"]
    assert (out, capfd.readouterr().err) == ("", "")


@pytest.mark.skipif(sys.platform != "linux", reason="/proc takes no folder")
def test_a_folder_that_nobody_can_make(program: Program) -> None:
    """Where the system refuses the folder itself, one line has the system's own words and names the variable; what is started below says nothing."""
    done = program("""
import subprocess
for _ in range(2):
    recorder = Recorder("/proc/self/x/run", lambda: "rank", {"rank": 3}, max_bytes=1 << 20)
    recorder.point(schema.SetDevice())
    recorder.point(schema.SetDevice())
    assert recorder.lost == 2
""")
    assert done.returncode == 0, done.stderr
    (line,) = _complaints(done.stderr)
    assert "cannot write /proc/self/x: No such file or directory." in line
    assert "DDP_PROBE_DIR" in line


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_pointer_of_another_user_leaves_no_litter(program: Program, tmp_path: Path) -> None:
    """Where `latest` belongs to somebody else, in a folder in which only owners replace, it stays and nothing is left beside it."""
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    (shared / "latest").symlink_to("theirs")
    done = program("""
from ddp_probe.traced.record import files
os.chdir("shared")
os.setuid(65534)
files.point_at("./mine")
""")
    assert done.returncode == 0, done.stderr
    assert os.readlink(str(shared / "latest")) == "theirs"
    assert sorted(path.name for path in shared.iterdir()) == [".gitignore", "latest"]


def test_after_a_failure_the_next_try_waits(make: Make, tmp_path: Path, capfd: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a time after a failed write nothing is tried, so that a sick file system costs the job next to nothing."""
    monkeypatch.setattr(writer, "_BACK_OFF", 1e6)
    (tmp_path / "run").write_text("", encoding="utf-8")
    recorder = make()
    recorder.point(schema.SetDevice())
    (tmp_path / "run").unlink()
    recorder.point(schema.SetDevice())
    assert recorder.lost == 2
    assert not (tmp_path / "run").exists()


def test_echo_off_says_nothing_of_it(make: Make, tmp_path: Path, capfd: Any) -> None:
    """A person who switched stderr off gets no line about lost events either; they are counted."""
    (tmp_path / "run").write_text("", encoding="utf-8")
    recorder = make(echo="off")
    recorder.point(schema.SetDevice())
    assert (recorder.lost, capfd.readouterr().err) == (1, "")


def test_a_disk_that_fills_up_leaves_whole_lines(program: Program, files: Files, lines_of: Lines) -> None:
    """Half a line is taken back; once there is room again lines go on, and the gap in seq is what was lost."""
    done = program("""
import resource
from ddp_probe.traced.record import writer
writer._BACK_OFF = 0.0
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))
recorder = make()
for _ in range(30):
    recorder.point(schema.SetDevice(device="x" * 50))
assert recorder.lost > 0 and os.stat(recorder.path).st_size < 2000, (recorder.lost, os.stat(recorder.path).st_size)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
recorder.point(schema.SetDevice(device="after"))
""")
    assert done.returncode == 0, done.stderr
    assert len(_complaints(done.stderr)) == 1
    (file,) = files()
    lines = lines_of(file)
    assert lines[-1]["device"] == "after"
    assert lines[-1]["seq"] == 31
    assert len(lines) < 31


@pytest.mark.skipif(shutil.which("unshare") is None, reason="unshare makes the mount namespace that holds the small disk")
def test_a_real_full_disk(tmp_path: Path, clean_env: Callable[..., Dict[str, str]], repo: Path) -> None:
    """On a tmpfs of 64 KiB the job goes on, every line there is whole, and stderr has one line that names the reason."""
    code = """
import json, os
from ddp_probe.shared import schema
from ddp_probe.traced.record import Recorder
recorder = Recorder("disk/run", lambda: "rank", {"rank": 3}, max_bytes=1 << 30)
for _ in range(2000):
    recorder.point(schema.SetDevice(device="x" * 50))
recorder.model("d0", [["w" * 100, [1], "float32", True]] * 1000)
lines = open(recorder.path, "rb").read().splitlines()
assert len(lines) == recorder.lines and recorder.lines + recorder.lost == 2001, (len(lines), recorder.lines, recorder.lost)
assert all(json.loads(line) for line in lines) and os.listdir("disk/run/models") == []
"""
    script = 'mkdir disk && mount -t tmpfs -o size=64k none disk || exit 77; exec "$@"'
    command = ["unshare", "--mount", "sh", "-c", script, "sh", sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, env=clean_env(PYTHONPATH=str(repo)), capture_output=True, text=True, timeout=60, check=False)
    if done.returncode == 77 or "unshare:" in done.stderr:
        pytest.skip("this machine does not let us mount: %s" % done.stderr.strip())
    assert done.returncode == 0, done.stderr
    assert _complaints(done.stderr) == [
        "ddp_probe: rank 3 cannot write %s/disk/run/rank.jsonl: No space left on device. Training goes on; events are lost from here." % tmp_path
    ]


def test_a_removed_folder_is_made_again(make: Make, tmp_path: Path, lines_of: Lines) -> None:
    """After rm -r of the run, events go on in a new file that starts with process.start; nothing is said, as nothing more is lost."""
    recorder = make()
    recorder.point(schema.SetDevice())
    shutil.rmtree(str(tmp_path / "run"))
    recorder.point(schema.SetDevice(device="later"))
    assert [line["event"] for line in lines_of(recorder.path)] == ["process.start", "device.set"]
    assert recorder.lost == 0


def test_a_job_that_closes_every_descriptor(make: Make, lines_of: Lines) -> None:
    """As a daemon does: the same file is opened again and has every line."""
    recorder = make()
    recorder.point(schema.SetDevice())
    os.close(_descriptor(recorder))
    recorder.point(schema.SetDevice())
    recorder.point(schema.SetDevice())
    assert [line["seq"] for line in lines_of(recorder.path)] == [0, 1, 2, 3]
    assert recorder.lost == 0


def test_a_file_of_the_job_under_our_old_number_is_not_written_to(make: Make, tmp_path: Path, lines_of: Lines) -> None:
    """Where the job closes our descriptor and its own file gets the number, that file stays as it is and stays open."""
    recorder = make()
    recorder.point(schema.SetDevice())
    number = _descriptor(recorder)
    os.close(number)
    theirs = os.open(str(tmp_path / "weights"), os.O_CREAT | os.O_WRONLY)
    assert theirs == number
    recorder.point(schema.SetDevice())
    recorder.close()
    os.write(theirs, b"weights")
    os.close(theirs)
    assert (tmp_path / "weights").read_bytes() == b"weights"
    assert [line["seq"] for line in lines_of(recorder.path)] == [0, 1, 2]


def test_every_descriptor_closed_in_a_real_program(program: Program, files: Files, lines_of: Lines) -> None:
    """os.closerange over all of them, stdin to stderr too: the job's next file gets number 0, ours none of the first three."""
    done = program("""
recorder = make()
recorder.point(schema.SetDevice())
os.closerange(0, 256)
recorder.point(schema.SetDevice())
theirs = os.open("theirs", os.O_CREAT | os.O_WRONLY)
assert theirs == 0
recorder.point(schema.SetDevice())
os._exit(recorder.lines)
""")
    assert done.returncode == 4
    (file,) = files()
    assert len(lines_of(file)) == 4
    assert (file.parent.parent / "theirs").read_bytes() == b""


def test_too_many_open_files(program: Program, files: Files, lines_of: Lines) -> None:
    """While the job has used up its descriptors events are lost; afterwards the same file goes on."""
    done = program("""
import resource
from ddp_probe.traced.record import writer
writer._BACK_OFF = 0.0
recorder = make()
recorder.point(schema.SetDevice())
recorder.close()
limit = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (16, limit[1]))
held = []
try:
    while True:
        held.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    pass
recorder.point(schema.SetDevice())
assert recorder.lost == 1
for fd in held:
    os.close(fd)
recorder.point(schema.SetDevice(device="after"))
""")
    assert done.returncode == 0, done.stderr
    assert "Too many open files" in done.stderr
    (file,) = files()
    assert lines_of(file)[-1]["device"] == "after"


def test_a_symlink_planted_at_the_files_name_is_not_followed(make: Make, tmp_path: Path, lines_of: Lines) -> None:
    """The next free name is taken, and what the link points at is neither written nor made."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "rank00003.host.7.jsonl").symlink_to(tmp_path / "victim")
    (tmp_path / "run" / "rank00003.host.7.1.jsonl").write_text("someone else's", encoding="utf-8")
    recorder = make()
    recorder.point(schema.SetDevice())
    assert recorder.path == str(tmp_path / "run" / "rank00003.host.7.2.jsonl")
    assert len(lines_of(recorder.path)) == 2
    assert not (tmp_path / "victim").exists()
    assert (tmp_path / "run" / "rank00003.host.7.1.jsonl").read_text(encoding="utf-8") == "someone else's"


def test_a_name_that_became_a_symlink_is_not_opened_again(make: Make, tmp_path: Path, lines_of: Lines) -> None:
    """Where the file was moved aside and a link put there, a lost descriptor leads to a new file."""
    recorder = make()
    recorder.point(schema.SetDevice())
    first = Path(str(recorder.path))
    first.rename(tmp_path / "moved")
    first.symlink_to(tmp_path / "moved")
    recorder.close()
    recorder.point(schema.SetDevice())
    assert recorder.path == str(tmp_path / "run" / "rank00003.host.7.1.jsonl")
    assert len(lines_of(tmp_path / "moved")) == 2
    assert [line["event"] for line in lines_of(recorder.path)] == ["process.start", "device.set"]


def test_the_file_stops_at_its_limit_and_says_so(make: Make, lines_of: Lines) -> None:
    """The last line is probe.full, the size is within the limit, and what came after is counted."""
    recorder = make(max_bytes=4096)
    for _ in range(100):
        recorder.point(schema.SetDevice(device="x" * 40))
    lines = lines_of(recorder.path)
    assert lines[-1]["event"] == "probe.full"
    assert lines[-1]["limit"] == 4096
    assert [line["event"] for line in lines].count("probe.full") == 1
    assert os.stat(str(recorder.path)).st_size <= 4096
    assert (recorder.lines, recorder.lost) == (len(lines), 102 - len(lines))


def test_the_limit_is_the_process_s_and_not_the_file_s(make: Make, tmp_path: Path) -> None:
    """A folder removed again and again does not give the process more bytes to write."""
    recorder = make(max_bytes=8192)
    for _ in range(100):
        recorder.point(schema.SetDevice(device="x" * 400))
        shutil.rmtree(str(tmp_path / "run"), ignore_errors=True)
    assert recorder.lines < 30
    assert recorder.lost > 80


def _descriptor(recorder: Recorder) -> int:
    """Return the number of the recorder's descriptor as the operating system tells it."""
    wanted = os.stat(str(recorder.path))
    for name in os.listdir("/proc/self/fd"):
        try:
            if os.path.samestat(os.fstat(int(name)), wanted):
                return int(name)
        except OSError:
            continue
    raise AssertionError("the file is not open")


def test_a_full_file_still_says_how_it_ended(make: Make, lines_of: Lines) -> None:
    """After probe.full come the last call that failed, begin and error, and the last line; the file stays within its limit."""
    recorder = make(max_bytes=16384)
    for number in range(200):
        recorder.point(schema.SetDevice(device="x" * 50))
        recorder.begin(schema.Load(map_location=str(number))).error(schema.Failure(type="OSError", message="try %d" % number))
    recorder.begin(schema.Load()).end()
    recorder.point(schema.ProcessEnd(lines=recorder.lines, lost=recorder.lost))
    lines = lines_of(recorder.path)
    full = [line["event"] for line in lines].index("probe.full")
    assert [(line["event"], line["phase"]) for line in lines[full + 1 :]] == [
        ("checkpoint.load", "begin"),
        ("checkpoint.load", "error"),
        ("process.end", "point"),
    ]
    assert (lines[full + 1]["map_location"], lines[full + 2]["failure"]["message"]) == ("199", "try 199")
    assert lines[full + 1]["span"] == lines[full + 2]["span"]
    assert os.stat(str(recorder.path)).st_size <= 16384


def test_a_pipe_in_place_of_the_log(make: Make, tmp_path: Path, impatient: None) -> None:
    """If the job puts a pipe that nobody reads where the log was, nothing waits for a reader, and the pipe stays empty."""
    recorder = make()
    recorder.point(schema.SetDevice())
    path = Path(str(recorder.path))
    path.unlink()
    os.mkfifo(str(path))
    before = time.monotonic()
    signal.alarm(60)
    try:
        for _ in range(100):
            recorder.point(schema.SetDevice())
    finally:
        signal.alarm(0)
    assert time.monotonic() - before < 60
    reader = os.open(str(path), os.O_RDONLY | os.O_NONBLOCK)
    assert os.read(reader, 100) == b""
    os.close(reader)
