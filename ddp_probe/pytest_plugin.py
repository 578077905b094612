"""The pytest plugin: with --ddp-probe each launch that a test starts is recorded, and a test that fails says what was found.

Every pytest of an environment imports this file, so without the option it is two options and nothing else. docs/pytest.md is its page.
"""

import os
import re
import sys
import threading
import time
from typing import Any, Dict, Generator, Iterator, List, Optional

import pytest

_LONGEST = 100  # Characters of a folder's name.
_SHOWN = 3  # Launches of one test that are judged, the newest first.
_PATIENCE = 60.0  # Seconds for the judgement of one launch.
_MOST = 64 << 20  # Bytes of that judgement.
_EARLY = 20.0  # Seconds before the end of a test's time at which it is judged, if its process will be ended then.
_INNER = ("DDP_PROBE_RUN", "DDP_PROBE_ORIGIN", "DDP_PROBE_ARMED", "DDP_PROBE_HOLDER", "DDP_PROBE_BROKEN")
_OURS = ("DDP_PROBE", "DDP_PROBE_DIR", "DDP_PROBE_HOME", "DDP_PROBE_REPORT", "DDP_PROBE_HANG_AFTER", *_INNER)
_INPUT = "ddp_probe_folder"  # What the controller of xdist passes to its workers.


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    group = parser.getgroup("ddp_probe", "launches of distributed PyTorch")
    group.addoption("--ddp-probe", action="store_true", help="record each launch that a test starts, and say what was found if the test fails")
    group.addoption("--ddp-probe-keep", action="store_true", help="with --ddp-probe: keep what was recorded for tests that pass, too")


def pytest_configure(config: pytest.Config) -> None:
    """Begin to record, if it is asked for."""
    if config.getoption("--ddp-probe"):
        config.pluginmanager.register(LaunchRecorder(config), "ddp_probe_launches")


class LaunchRecorder:
    """Arms what each test starts, and judges it if the test fails."""

    def __init__(self, config: pytest.Config) -> None:
        from ddp_probe.activation import lifecycle
        from ddp_probe.cli.run import environment

        del lifecycle  # It is loaded before the first fork: the child needs it.
        self._environment = environment
        self._keep = bool(config.getoption("--ddp-probe-keep"))
        worker: Dict[str, Any] = getattr(config, "workerinput", {})
        base = os.path.abspath(os.environ.get("DDP_PROBE_DIR") or "ddp_probe_runs")
        self.folder: str = worker.get(_INPUT) or os.path.join(base, "pytest-%s-%d" % (time.strftime("%Y%m%d-%H%M%S"), os.getpid()))
        self._session = os.path.join(self.folder, "session" + worker.get("workerid", ""))  # Of what is started outside of tests, such as a pool.
        self._before: Optional[Dict[str, str]] = None  # The environment before the session.
        self._now = ""  # The folder of what is started now: the session's, or that of the test that runs.
        self._alarm: Optional[threading.Timer] = None
        os.register_at_fork(after_in_child=self._arm_fork)

    def pytest_report_header(self) -> str:
        """Say where the launches are recorded, or why they are not."""
        from ddp_probe.doctor import armed_programs

        why = armed_programs.why_not([sys.executable], self._environment(dict(os.environ)))
        return "ddp_probe: not active: %s" % why if why else "ddp_probe: launches are recorded in %s" % self.folder

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Let the workers of xdist use the same folder."""
        node.workerinput[_INPUT] = self.folder

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Arm what is started before the first test, but not the workers of xdist."""
        if not session.config.pluginmanager.hasplugin("dsession"):
            self._before, self._now = dict(os.environ), self._session
            self._arm(self._before)
            _speak_within(getattr(session.config, "_env_timeout", None))  # Of pytest-timeout, for every test.

    def _arm(self, before: Dict[str, str]) -> None:
        outer = {name: value for name, value in before.items() if name not in _INNER}
        armed = {"DDP_PROBE_REPORT": "off", **self._environment(outer, self._now)}  # What a launcher would print is in the section.
        _set(armed)
        os.environ["PYTHONPATH"] = armed["PYTHONPATH"]

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, None]:
        """Arm what is started by the test and by fixtures that are made for it."""
        import shutil

        before, outer = dict(os.environ), self._now
        self._now = folder = os.path.join(self.folder, _folder_name(item.nodeid))
        shutil.rmtree(folder, ignore_errors=True)  # Of an earlier attempt, if failed tests are run again.
        self._arm(before)
        try:
            yield
        finally:
            _set(before)
            self._now = outer
            self._drop(folder)

    def _drop(self, folder: str) -> None:
        """Remove what has been recorded where nothing failed."""
        import shutil

        if not (self._keep or os.path.exists(os.path.join(folder, ".failed"))):
            shutil.rmtree(folder, ignore_errors=True)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, Any, None]:
        """Add a section to the report of a phase that failed, while what it started may still hang."""
        report: pytest.TestReport = (yield).get_result()
        said = self._said(self._now, report.capstderr) if report.failed else ""
        if said:
            report.sections.append(("ddp_probe", said))

    def _said(self, folder: str, printed: str) -> str:
        """Say what was found in what a test started; else in what was started before it, if the rules found something there."""
        runs = _runs(folder)
        said = _said(runs, printed)
        if not runs:
            folder, runs = self._session, _runs(self._session)
            said = _said(runs, "", found=True)
        if said:
            with open(os.path.join(folder, ".failed"), "w", encoding="utf-8"):  # Kept from here on.
                pass
        return said

    @pytest.hookimpl(optionalhook=True)
    def pytest_timeout_set_timer(self, item: pytest.Item, settings: Any) -> None:
        """Let ranks that stand write their stacks in time; where pytest-timeout ends the process at once, speak shortly before."""
        _speak_within(settings.timeout)
        if settings.method == "thread" and self._alarm is None:
            ends = time.monotonic() + settings.timeout
            self._alarm = threading.Timer(settings.timeout - min(_EARLY, settings.timeout / 4), self._speak, (item, self._now, ends))
            self._alarm.daemon = True
            self._alarm.start()

    @pytest.hookimpl(optionalhook=True)
    def pytest_timeout_cancel_timer(self, item: pytest.Item) -> None:
        """Say nothing: the test has ended in time."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _speak(self, item: pytest.Item, folder: str, ends: float) -> None:
        """Judge what the test has started, and print it when its time is nearly over."""
        alarm, said = self._alarm, self._said(folder, "")
        time.sleep(max(0.0, ends - time.monotonic() - 0.2))
        if said and self._alarm is alarm:
            capture: Any = item.config.pluginmanager.getplugin("capturemanager")
            capture.suspend_global_capture(item)
            sys.stderr.write("\n--- ddp_probe: %s ---\n%s\n" % (item.nodeid, said))
            sys.stderr.flush()

    @pytest.hookimpl(trylast=True)
    def pytest_unconfigure(self) -> None:
        """Leave the environment as it was, and no empty folder."""
        if self._before is not None:
            _set(self._before)
            if os.environ.get("PYTHONPATH") == self._environment(dict(self._before))["PYTHONPATH"]:
                _put("PYTHONPATH", self._before.get("PYTHONPATH"))
            self._before, self._now = None, ""
            self._drop(self._session)
        for folder in (self.folder, os.path.dirname(self.folder)):
            try:
                os.rmdir(folder)
            except OSError:
                return

    def _arm_fork(self) -> None:
        """Let a fork of this process wait until it becomes a rank, as a spawned child does."""
        if self._now:
            from ddp_probe import activation
            from ddp_probe.activation import roles

            os.environ["DDP_PROBE_ARMED"] = "%d:%s" % (os.getppid(), roles.armed_as(os.environ))
            activation.start()
            del os.environ["DDP_PROBE_ARMED"]


def _set(environment: Dict[str, str]) -> None:
    """Take the probe's variables from there, and no other: what a fixture has set stays."""
    for name in _OURS:
        _put(name, environment.get(name))


def _put(name: str, value: Optional[str]) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


def _speak_within(timeout: Optional[float]) -> None:
    """Let ranks that hang for half of a test's time say so."""
    if timeout:
        os.environ.setdefault("DDP_PROBE_HANG_AFTER", "%g" % min(60.0, max(1.0, timeout / 2)))


def _folder_name(nodeid: str) -> str:
    """Return a folder's name for a test; what had to be changed is distinguished by a digest."""
    import hashlib

    name = re.sub(r"[^\w.-]+", "-", nodeid, flags=re.ASCII)[-_LONGEST:].strip("-.")
    return "%s-%s" % (name, hashlib.sha256(nodeid.encode("utf-8", "replace")).hexdigest()[:6])


def _runs(folder: str) -> List[str]:
    """Return what has been recorded in a test's folder, newest first."""
    try:
        found = [entry.path for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return sorted(found, key=os.path.getmtime, reverse=True)


def _said(runs: List[str], printed: str, found: bool = False) -> str:
    """Return what the rules say of each launch, or only of those in which they found something; what the only one printed is read as well."""
    paths = [[run] for run in runs[:_SHOWN]]
    if printed and len(runs) == 1:
        from ddp_probe.showing import printed_file

        log = os.path.join(os.path.dirname(runs[0]), "stderr.txt")
        printed_file.write(log, printed)
        paths[0].append(log)
    lines: List[str] = []
    for launch in paths:
        lines += _judged(launch, found)
    if len(runs) > _SHOWN and not found:
        lines.append("And %d more launches in %s" % (len(runs) - _SHOWN, os.path.dirname(runs[0])))
    return "\n".join(lines)


def _judged(paths: List[str], found: bool = False) -> Iterator[str]:
    """Judge in a separate process: reading changes what the garbage collector of this one passes over."""
    import json
    import shlex

    from ddp_probe.activation.installer import locations
    from ddp_probe.shared.child_process import ChildProcess
    from ddp_probe.showing import safe

    path = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), locations.home())))
    env = {**os.environ, "PYTHONPATH": path, "DDP_PROBE": ""}
    command = [sys.executable, "-m", "ddp_probe", "report", "--json", *paths]
    try:
        child = ChildProcess(command, env, most=_MOST)
        try:
            printed = child.wait(_PATIENCE)
        finally:
            child.end()
        if printed.code is None or not printed.out:
            words = printed.err.decode("utf-8", "replace").strip().splitlines()[-1:]
            raise ValueError("report %s" % (printed.why or "ended with %d: %s" % (printed.code or 0, "".join(words))))
        report: Dict[str, Any] = json.loads(printed.out)
    except (OSError, ValueError) as exc:
        yield safe.line("The launch could not be judged: %s" % exc)
    else:
        if found and not report["findings"]:
            return
        yield from _lines(report)
    yield safe.visible("More: python -m ddp_probe report %s" % " ".join(map(shlex.quote, paths)))


def _lines(report: Dict[str, Any]) -> Iterator[str]:
    """Yield what is said of a launch. A text of the job may hold an escape sequence, and pytest prints it to a terminal, or to the log of CI."""
    from ddp_probe.showing.safe import visible

    for finding in report["findings"]:
        ranks = " %s" % finding["ranks"] if finding["ranks"] else ""
        yield visible("%s %s%s %s: %s" % (finding["id"], finding["slug"], ranks, finding["severity"], finding["verdict"]))
        yield "  change: %s" % "\n  ".join(map(visible, finding["remedy"].split("\n")))
    for question in report["undecided"][:_SHOWN]:
        yield visible("undecided: %s" % question["because"])
        yield visible("  next: %s" % question["next"])
    if report["verdict"] == "clear":
        yield "clear: every rank of this launch ended normally."
