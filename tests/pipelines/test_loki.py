"""Loki itself answers the queries of docs/pipelines/loki.md over recorded runs; skipped if it is not installed."""

import collections
import json
import time
import urllib.parse
import urllib.request
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

import ports
import pytest
import yaml
from collector_scene import nanoseconds, running, wait_for
from pipeline_pages import SEARCHES, events, fences, found

pytestmark = pytest.mark.slow

_BESIDE = ("event", "phase", "rank")
_JOBS = ("03_model_on_cpu_on_one_rank", "08_long_validation_on_rank0", "00_healthy_ddp")

# Loki as it comes, on the loopback interface alone.
_LOKI = """
auth_enabled: false
server: {http_listen_address: 127.0.0.1, http_listen_port: %(port)d, grpc_listen_address: 127.0.0.1, grpc_listen_port: %(grpc)d}
common:
  instance_addr: 127.0.0.1
  path_prefix: %(folder)s
  replication_factor: 1
  storage: {filesystem: {chunks_directory: %(folder)s/chunks, rules_directory: %(folder)s/rules}}
  ring: {kvstore: {store: inmemory}}
schema_config:
  configs: [{from: 2020-01-01, store: tsdb, object_store: filesystem, schema: v13, index: {prefix: index_, period: 24h}}]
limits_config: {max_line_size: 8MB}
analytics: {reporting_enabled: false}
"""


class Loki:
    """A running Loki, and the events in it, as if each run had ended a moment ago: what is older than some hours is asked of its store alone."""

    def __init__(self, port: int) -> None:
        self.address = "http://127.0.0.1:%d" % port
        self.events = [event for job in _JOBS for event in events(job)]
        self.now = time.time_ns()
        self._last: Dict[str, int] = {}
        for event in self.events:
            self._last[event["run"]] = max(self._last.get(event["run"], 0), nanoseconds(event["ts"]))

    def at(self, event: Dict[str, Any]) -> int:
        """Return the time that an event gets."""
        return self.now - self._last[event["run"]] + nanoseconds(event["ts"])

    def when(self, wanted: Callable[[Dict[str, Any]], bool]) -> List[Tuple[str, int]]:
        """Return run and time of the events that are wanted."""
        return sorted((event["run"], self.at(event)) for event in self.events if wanted(event))

    def ask(self, path: str, body: Optional[bytes] = None, **parameters: Any) -> bytes:
        """Return an answer of its interface."""
        url = "%s%s?%s" % (self.address, path, urllib.parse.urlencode(parameters))
        request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return bytes(answer.read())

    def is_ready(self) -> bool:
        """Tell whether it takes entries."""
        try:
            return b"ready" in self.ask("/ready")
        except OSError:
            return False

    def fill(self) -> None:
        """Push all events as the configurations do."""
        streams = [
            {
                "stream": {"job": "ddp_probe", "host": event["host"], "run": event["run"]},
                "values": [[str(self.at(event)), json.dumps(event), {name: str(event[name]) for name in _BESIDE if name in event}]],
            }
            for event in self.events
        ]
        self.ask("/loki/api/v1/push", json.dumps({"streams": streams}).encode())

    def query(self, text: str) -> List[Tuple[str, int]]:
        """Return run and time of what a query finds, in all time that the events span."""
        start = min(map(self.at, self.events))
        answer = self.ask("/loki/api/v1/query_range", query=text, start=start, end=self.now + 1, limit=5000)
        streams = json.loads(answer)["data"]["result"]
        return sorted((stream["stream"]["run"], int(ns)) for stream in streams for ns, _ in stream["values"])

    def count(self, text: str) -> Dict[str, float]:
        """Return what an alert's expression says of each run."""
        text = text.replace("[5m]", "[1h]")  # the runs took minutes
        result = json.loads(self.ask("/loki/api/v1/query", query=text, time=self.now + 1))["data"]["result"]
        return {one["metric"]["run"]: float(one["value"][1]) for one in result}


@pytest.fixture(scope="module")
def loki(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loki]:
    """A Loki with all events of a few runs."""
    program, work = found("loki"), tmp_path_factory.mktemp("loki")
    port = ports.free_port()
    config, log = work / "loki.yaml", work / "log.txt"
    config.write_text(_LOKI % {"port": port, "grpc": ports.free_port(), "folder": work / "loki"}, encoding="utf-8")
    with running([program, "-config.file=%s" % config], log):
        server = Loki(port)
        wait_for(server.is_ready, log)
        server.fill()
        yield server


@pytest.mark.parametrize("title", sorted(SEARCHES))
def test_a_query_of_the_page_finds_what_it_says(loki: Loki, title: str) -> None:
    """Each query of the page finds the events that its title names, and no other."""
    (query,) = [block for block in fences("loki.md", "logql") if block.startswith("# " + title)]
    expected = loki.when(SEARCHES[title])
    assert loki.query(query.partition("\n")[2]) == expected
    assert expected


@pytest.mark.parametrize(("alert", "title"), [("TrainingHangs", "Hangs"), ("TrainingFailed", "Processes that ended badly")])
def test_an_alert_of_the_page_names_the_runs(loki: Loki, alert: str, title: str) -> None:
    """Each alert's expression counts, by run, the events that the query of the same name finds; a healthy run is not in it."""
    (block,) = fences("loki.md", "yaml")
    (rule,) = [rule for rule in yaml.safe_load(block)["groups"][0]["rules"] if rule["alert"] == alert]
    expected = collections.Counter(event["run"] for event in loki.events if SEARCHES[title](event))
    assert loki.count(rule["expr"]) == expected
    assert len(expected) < len(_JOBS)


def test_the_rank_is_found_without_a_label(loki: Loki) -> None:
    """A query by rank finds the events of that rank, and a run on one host is one stream."""
    assert loki.query('{job="ddp_probe"} | rank="1"') == loki.when(lambda event: event.get("rank") == 1)
    series = json.loads(loki.ask("/loki/api/v1/series", start=min(map(loki.at, loki.events)), end=loki.now + 1))["data"]
    assert len(series) == len(_JOBS)
