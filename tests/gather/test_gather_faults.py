"""What goes wrong while hosts gather is told in one line, loses nothing that has come, and is complete after another gather."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from gathering import HALF_SENDER, ended, size, split, start, until, without_paths

pytestmark = pytest.mark.slow
_LONG = ("--time-limit", 200)
_WAITS_FOR_TWO = HALF_SENDER.parent / "waits_for_two.py"


@pytest.fixture
def roots(whole_run, tmp_path):
    """The disks of two hosts: the first has one node of the run, the second the other three."""
    return [split(whole_run, tmp_path / "a", "1"), split(whole_run, tmp_path / "b", "234")]


@pytest.fixture
def kept(whole_run, roots):
    """The folder in which rank 0 keeps what has come."""
    return roots[0] / (whole_run.name + ".gathered")


def _half(process):
    assert [process.stdout.readline(), process.stdout.readline()] == ["ready\n", "half\n"]


def _kill(process):
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def _lacking(told):
    """Return the notes of what gather did not bring; another one says that the ledgers of these ranks were off."""
    return [note for note in told["inventory"]["notes"] if note.startswith("not gathered: ")]


def test_a_host_is_cut_off(launch, roots, kept, whole_report, report):
    """A host that is killed is named with how far it came, its ranks are not seen, and the next gather continues its fold."""
    gathers = launch(2)
    first, second = gathers.start(0, roots[0], "--json", *_LONG), gathers.start(1, roots[1], *_LONG, program=HALF_SENDER)
    _half(second)
    _kill(second)
    done = ended(first)
    told = without_paths(done.stdout)
    (note,) = _lacking(told)
    sent = r"it had sent 3 KiB of \S+ [KM]iB of its fold"
    assert re.fullmatch(r"not gathered: \S+ \(rank 1\) was cut off: " + sent, note)
    assert (told["verdict"], told["inventory"]["missing"], done.returncode) == ("undecided", [], 3)
    assert "Start gather again on all hosts" in json.dumps(told["undecided"])
    assert "ddp_probe: %s\n" % note in done.stderr
    assert report(kept) == told
    assert sorted(path.suffix for path in kept.iterdir()) == [".fold", ".json", ".part"]
    gathers = launch(2)
    first, second = gathers.start(0, roots[0], "--json", *_LONG), gathers.start(1, roots[1], *_LONG)
    assert (ended(second).returncode, without_paths(ended(first).stdout)) == (1, whole_report)
    assert sorted(path.suffix for path in kept.iterdir()) == [".fold", ".fold", ".json"]


def test_what_is_there_is_not_sent_again(launch, roots, kept, whole_report):
    """A gather over what an earlier one has brought receives nothing, and a fold of which a part is there continues at its end."""
    for lacking in (None, 0, 5000):
        if lacking is not None:
            fold = next(path for path in kept.glob("*.fold") if lacking < size(path))
            (kept / (fold.name + ".part")).write_bytes(fold.read_bytes()[: size(fold) - lacking])
            fold.unlink()
        gathers = launch(2)
        second, first = gathers.start(1, roots[1], *_LONG), gathers.start(0, roots[0], "--json", *_LONG)
        assert without_paths(ended(first).stdout if lacking is None else _received(first, lacking)) == whole_report
        ended(second)


def _received(process, count):
    done = ended(process)
    received = "%d bytes" % count if count < 1024 else "%d KiB" % round(count / 1024)
    assert "gathered from 2 hosts: %s received, in " % received in done.stderr
    return done.stdout


def test_a_host_that_stops_and_one_that_does_not_come(launch, roots):
    """A host that stops sending and a rank that does not come are a line each; rank 0 reports what it has."""
    gathers = launch(3)
    second = gathers.start(1, roots[1], *_LONG, program=HALF_SENDER)
    assert second.stdout.readline() == "ready\n"
    done = ended(gathers.start(0, roots[0], "--json", "--time-limit", 4, program=_WAITS_FOR_TWO))
    _kill(second)
    absent, stopped = _lacking(json.loads(done.stdout))
    assert re.fullmatch(r"not gathered: rank 2 of 3 did not reach 127\.0\.0\.1:\d+ within 4 s", absent)
    sent = r"it had sent 3 KiB of .* of its fold"
    assert re.fullmatch(r"not gathered: \S+ \(rank 1\) stopped sending for 4 s: " + sent, stopped)
    assert done.returncode == 3


def test_a_gather_that_is_killed(launch, whole_run, whole_report, report, tmp_path):
    """After rank 0 is killed the other ranks end and say so, the folds that have come can be read, and the next gather completes them."""
    roots = [split(whole_run, tmp_path / "a", "1"), split(whole_run, tmp_path / "b", "2"), split(whole_run, tmp_path / "c", "34")]
    kept = roots[0] / (whole_run.name + ".gathered")
    gathers = launch(3)
    first = gathers.start(0, roots[0], *_LONG)
    second, third = gathers.start(1, roots[1], *_LONG, program=HALF_SENDER), gathers.start(2, roots[2], *_LONG)
    _half(second)
    until(lambda: len(list(kept.glob("*.fold"))) == 2, first)
    first.kill()  # the process that brings the files of its host ends by itself
    first.communicate()
    _kill(second)
    done = ended(third)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("gather of rank 2 on ")
    assert "start gather again: what has arrived is kept" in done.stderr
    told = report(kept)
    assert _lacking(told) == ["not gathered: gather was ended before all hosts had come to their end"]
    assert (told["findings"][0]["ranks"], told["inventory"]["missing"], told["inventory"]["seen"]) == ([9], [], 12)
    gathers = launch(3)
    again = [gathers.start(rank, roots[rank], "--json", *_LONG) for rank in range(3)]
    done = [ended(process) for process in again]
    assert (without_paths(done[0].stdout), [each.returncode for each in done]) == (whole_report, [1, 1, 1])


@pytest.mark.skipif(shutil.which("unshare") is None, reason="unshare makes the mount namespace that holds the small disk")
def test_a_full_disk(launch, roots, kept, whole_report, clean_env, tmp_path):
    """On a full disk of rank 0, the fold that does not fit is told with how far it came, the report has the others, and more room completes it."""
    next(roots[1].glob("*/models")).joinpath("large.json").write_bytes(os.urandom(1 << 18))  # A fold holds it; a disk has no half blocks.
    sizes = [_fold_size(root, tmp_path / "measured.fold", clean_env) for root in roots]
    small, into = sizes[0] + sizes[1] // 2 + 8192, tmp_path / "disk"  # two pages for gathered.json
    into.mkdir()
    gathers, again = launch(2), launch(2)
    command = '"%s" -m ddp_probe gather --json --time-limit 200 --into %s' % (sys.executable, shlex.quote(str(into)))
    script = "mount -t tmpfs -o size=%d none %s || exit 77\n" % (small, shlex.quote(str(into)))
    script += "%s > %s\n echo $? >&2\n mount -o remount,size=64m %s\n" % (command, *(shlex.quote(str(path)) for path in (tmp_path / "first", into)))
    script += "exec env %s %s" % (" ".join("%s=%s" % each for each in again.env(0, roots[0]).items() if each[0] == "MASTER_PORT"), command)
    words = ["unshare", "--mount", "sh", "-c", script]
    if subprocess.run([*words[:2], "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        pytest.skip("This user may not make a mount namespace.")
    first = subprocess.Popen(words, env=gathers.env(0, roots[0]), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until(lambda: list(Path("/proc/%d/root%s" % (first.pid, into)).glob("*.fold")) or first.poll() == 77, first)
    others = [gathers.start(1, roots[1], *_LONG), again.start(1, roots[1], *_LONG)]
    done = ended(first)
    if done.returncode == 77:
        for each in others:
            _kill(each)
        pytest.skip("This user may not mount a file system in a namespace of its own.")
    (note,) = _lacking(json.loads((tmp_path / "first").read_text()))
    assert re.fullmatch(r"not gathered: the fold of \S+ \(rank 1\) is not kept: No space left on device, after \S+ [KM]iB of \S+ [KM]iB", note)
    assert "\n3\n" in done.stderr
    assert without_paths(done.stdout) == whole_report
    assert [ended(each).returncode for each in others] == [3, 1]


def _fold_size(root, target, clean_env):
    code = "import sys; from ddp_probe.reading import fold; fold.write(sys.argv[1:2], open(sys.argv[2], 'wb'))"
    assert ended(start(["-c", code], [root, target], clean_env())).returncode == 0
    return size(target)
