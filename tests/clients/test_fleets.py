"""docs/fleets.md run by its engines: the report over the folds is the one over the files. And what goes to other systems: a store, docs/pipelines."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple

import pytest

REPO = Path(__file__).resolve().parent.parent.parent
PAGE = (REPO / "docs" / "fleets.md").read_text(encoding="utf-8")
RECORDED = REPO / "tests" / "recorded" / "new" / "12_data_error_on_one_rank"
_ENGINES = {"Ray": "ray", "Dask": "distributed", "Spark": "pyspark"}
# The worker and what it has started are killed while the fold is being written.
_KILLED = """\
    if name == {middle!r} and not os.path.exists({once!r}):
        open({once!r}, "w").close()
        child = subprocess.Popen(command)
        while child.poll() is None and not any(each.startswith(".fold.") for each in os.listdir(FOLDS)):
            time.sleep(0.001)
        child.kill()
        os.kill(os.getpid(), 9)
"""
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "PYSPARK_SUBMIT_ARGS": "--master local[2,4] --conf spark.ui.enabled=false pyspark-shell",  # Four tries of a task: local mode has one.
    "PYSPARK_PYTHON": sys.executable,
    "SPARK_LOCAL_IP": "127.0.0.1",
}


class Fleet(NamedTuple):
    """A launch of one rank a host, of which one was killed, and the report over its files."""

    logs: Path
    ranks: int
    code: int
    report: Dict[str, Any]


def _block(heading: str) -> str:
    found = re.search(r"## %s\n.*?```\w+\n(.*?)```" % heading, PAGE, re.S)
    assert found is not None
    return found[1]


def _said(report: str) -> Dict[str, Any]:
    """Return a report without the folders that its files lie in."""
    said: Dict[str, Any] = json.loads(re.sub(r'(?<=")/[^"]*/(?=[^"/]+\.jsonl")', "", report))
    del said["inventory"]["folders"]
    said["inventory"]["files"].sort()
    return said


# 10 240 hosts with --all, 240 otherwise.
@pytest.fixture(scope="module", params=[240, pytest.param(10240, marks=[pytest.mark.nightly, pytest.mark.timeout(1800)])])
def fleet(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, run_python: Callable[..., Any]) -> Fleet:
    """Simulated hosts of one rank each."""
    hosts, root = request.param, tmp_path_factory.mktemp("fleet")
    size = [hosts, "--hosts", hosts, "--events", 24, "--fault", "killed:random", "--seed", hosts]
    simulated = run_python([REPO / "scripts" / "simulate_ranks", *size, "--out", root], timeout=600)
    assert simulated.returncode == 0, simulated.stderr
    logs = simulated.stdout.strip()
    done = run_python(["-m", "ddp_probe", "report", "--json", logs], timeout=600)
    return Fleet(Path(logs), hosts, done.returncode, _said(done.stdout))


@pytest.mark.parametrize("engine", _ENGINES)
def test_a_program_fits_on_the_page(engine: str) -> None:
    """It has at most thirty lines, and Python compiles it."""
    program = _block(engine)
    assert program.count("\n") <= 30
    compile(program, engine, "exec")


@pytest.mark.parametrize("engine", _ENGINES)
def test_an_engine_runs_its_program(engine: str, fleet: Fleet, run_python: Callable[..., Any], clean_env: Callable[..., Any], tmp_path: Path) -> None:
    """The report over the folds of an engine is the report over the files, to the letter, though one worker is killed in the middle of its fold."""
    if importlib.util.find_spec(_ENGINES[engine]) is None:
        pytest.skip("%s is not installed." % engine)
    folds, once = tmp_path / "folds", tmp_path / "once"
    folds.mkdir()
    parts = (fleet.ranks + 99) // 100
    killed = _KILLED.format(middle="%03d" % (parts // 2), once=str(once))
    program = re.sub(r"LOGS, FOLDS, RANKS = .*", "LOGS, FOLDS, RANKS = %r, %r, %d" % (str(fleet.logs), str(folds), fleet.ranks), _block(engine))
    program = re.sub(r"    command = .*\n", lambda line: line[0] + killed, program).replace('"report",', '"report", "--json",')
    program = program.replace("ray.init()", 'ray.init(include_dashboard=False, _node_ip_address="127.0.0.1")')
    (tmp_path / "program.py").write_text("import os\nimport time\n" + program, encoding="utf-8")
    done = run_python([tmp_path / "program.py"], env=clean_env(**_QUIET), cwd=tmp_path, timeout=1500)
    assert done.returncode == fleet.code == 1, done.stderr[-2000:]
    assert once.exists()
    assert sorted(fold.name for fold in folds.glob("*.fold")) == ["%03d.fold" % part for part in range(parts)] + ["launchers.fold"]
    said = _said(done.stdout[done.stdout.index("{") :])
    assert said == fleet.report
    assert len(said["ranks"]) == fleet.ranks


def test_a_slurm_array_folds(run_python: Callable[..., Any], clean_env: Callable[..., Any], tmp_path: Path) -> None:
    """Each task writes the fold of its hundred ranks, and one without a rank says that there is nothing."""
    script = _block("A SLURM array")
    assert script.count("\n") <= 30
    logs, folds = shutil.copytree(RECORDED, tmp_path / "logs"), tmp_path / "folds"
    folds.mkdir()
    env = clean_env(LOGS=str(logs), FOLDS=str(folds), PATH="%s:%s" % (os.path.dirname(sys.executable), os.environ["PATH"]))
    codes = [
        subprocess.run(["bash", "-c", script], env={**env, "SLURM_ARRAY_TASK_ID": str(task)}, stderr=subprocess.DEVNULL, check=False).returncode
        for task in (0, 1)
    ]
    assert codes == [0, 2]
    assert [path.name for path in folds.iterdir()] == ["000.fold"]
    over_folds, over_files = (_findings(run_python(["-m", "ddp_probe", "report", "--json", path]).stdout) for path in (folds / "000.fold", logs))
    assert over_folds == over_files


def _findings(report: str) -> List[Any]:
    found = json.loads(report)
    return [found["verdict"], [(each["id"], each["ranks"], each["verdict"]) for each in found["findings"]]]


def test_a_real_server_of_s3(run_python: Callable[..., Any], clean_env: Callable[..., Any], free_port: Callable[[], int]) -> None:
    """A run in a bucket behind HTTP is folded into the bucket, and the report over the fold in it is the one over the files in it."""
    port = free_port()
    names = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1"}
    env = clean_env(AWS_ENDPOINT_URL="http://127.0.0.1:%d" % port, **names)
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    server = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        fill = "import fsspec, sys, time\nfs = fsspec.filesystem('s3')\n"
        fill += "while True:\n    try:\n        fs.mkdir('logs')\n        break\n    except Exception:\n        time.sleep(0.2)\n"
        fill += "fs.put(sys.argv[1], 'logs/run7', recursive=True)\n"
        assert run_python(["-c", fill, RECORDED], env=env).returncode == 0
        folded = run_python(["-m", "ddp_probe", "fold", "s3://logs/run7", "-o", "s3://logs/folds/0.fold"], env=env)
        assert (folded.returncode, folded.stderr) == (0, "")
        done = run_python(["-m", "ddp_probe", "report", "--brief", "s3://logs/folds/*.fold"], env=env)
        assert done.returncode == 1, done.stderr
        assert done.stdout == run_python(["-m", "ddp_probe", "report", "--brief", "s3://logs/run7"], env=env).stdout
    finally:
        server.kill()
        server.wait()


class _Collector(BaseHTTPRequestHandler):
    """The receiver of OTLP/HTTP, as far as one request goes."""

    got: List[Any] = []

    def do_POST(self) -> None:
        """Keep what arrives."""
        self.got.append((self.path, self.headers["Content-Type"], self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *args: Any) -> None:
        """Print nothing."""


def test_a_report_is_sent_over_otlp(run_python: Callable[..., Any], clean_env: Callable[..., Any]) -> None:
    """OpenTelemetry's own messages read what the program of docs/pipelines sends: a record with the verdict, its rule, ranks and severity."""
    from google.protobuf import json_format
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
    from opentelemetry.proto.logs.v1.logs_pb2 import SeverityNumber

    page = (REPO / "docs" / "pipelines" / "README.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"```python\n(.*?)```", page, re.S)
    server = HTTPServer(("127.0.0.1", 0), _Collector)
    thread = threading.Thread(target=server.handle_request)
    thread.start()
    env = clean_env(OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:%d" % server.server_port)
    done = run_python(["-c", program, RECORDED], env=env)
    thread.join(60)
    server.server_close()
    assert done.returncode == 0, done.stderr
    ((path, kind, body),) = _Collector.got
    assert (path, kind) == ("/v1/logs", "application/json")
    (told,) = json_format.Parse(body, ExportLogsServiceRequest()).resource_logs
    (record,) = told.scope_logs[0].log_records
    (found,) = json.loads(run_python(["-m", "ddp_probe", "report", "--json", RECORDED]).stdout)["findings"]
    assert record.body.string_value == found["verdict"]
    assert SeverityNumber.Name(record.severity_number) == "SEVERITY_NUMBER_ERROR"
    attributes = {one.key: one.value.string_value for one in record.attributes}
    assert (attributes["ddp_probe.rule"], attributes["ddp_probe.ranks"]) == (found["id"], "1")
