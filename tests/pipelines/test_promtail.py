"""Promtail and Loki themselves run docs/pipelines/promtail.yaml and the queries of docs/pipelines/loki.md; skipped if they are not installed."""

import json
import re
import urllib.parse
import urllib.request
from typing import Any, Dict, Iterator, List, NamedTuple

import pytest
from collector_scene import Entry, Key, Scene, key, nanoseconds, running, wait_for
from pipeline_pages import SEARCHES, Place, configured, fences, found

pytestmark = pytest.mark.slow

# Loki as it comes, on the loopback interface alone, for events that may be of last year.
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
limits_config: {reject_old_samples: false, max_query_length: 0, max_line_size: 8MB}
analytics: {reporting_enabled: false}
"""


class Loki(NamedTuple):
    """A running Loki."""

    port: int
    expected: Dict[Key, Dict[str, Any]]

    def ask(self, path: str, **parameters: Any) -> Any:
        """Return an answer of its interface."""
        url = "http://127.0.0.1:%d%s?%s" % (self.port, path, urllib.parse.urlencode(parameters))
        with urllib.request.urlopen(url, timeout=30) as answer:
            return json.load(answer)

    def query(self, text: str) -> List[Entry]:
        """Return what a query finds in all time that the events span."""
        times = [nanoseconds(event["ts"]) for event in self.expected.values()]
        found = self.ask("/loki/api/v1/query_range", query=text, start=min(times) - 1, end=max(times) + 1, limit=5000)["data"]["result"]
        return [Entry(stream["stream"], int(ns), line, {}) for stream in found for ns, line in stream["values"]]

    def answers(self) -> bool:
        """Tell whether it is ready to take entries."""
        try:
            with urllib.request.urlopen("http://127.0.0.1:%d/ready" % self.port, timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


@pytest.fixture(scope="module")
def loki(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loki]:
    """A Loki that Promtail has filled in one pass over both runs, with a restart in it."""
    import ports

    programs = {name: found(name) for name in ("promtail", "loki")}
    work = tmp_path_factory.mktemp("loki")
    port, grpc = ports.free_port(), ports.free_port()
    (work / "loki.yaml").write_text(_LOKI % {"port": port, "grpc": grpc, "folder": work / "loki"}, encoding="utf-8")
    scene, log = Scene(work / "runs"), work / "log.txt"
    config = work / "promtail.yaml"
    config.write_text(configured("promtail.yaml", Place(scene.runs, work / "state", port)), encoding="utf-8")
    (work / "state").mkdir()
    with running([programs["loki"], "-config.file=%s" % (work / "loki.yaml")], log):
        server = Loki(port, scene.expected)
        wait_for(server.answers, log)
        for step in ((scene.before, scene.during), (scene.later,)):
            step[0]()
            with running([programs["promtail"], "-config.file=%s" % config], log):
                for more in step[1:]:
                    wait_for(lambda: bool(server.query(_EVERYTHING)), log)
                    more()
                wait_for(lambda: len(server.query(_EVERYTHING)) >= len(scene.expected), log)
        yield server


_EVERYTHING = '{job="ddp_probe", run=~".+"}'


def _keys(entries: List[Entry]) -> List[Key]:
    return sorted(key(json.loads(entry.line)) for entry in entries)


def test_each_event_arrives_once(loki: Loki) -> None:
    """Every whole line of both runs is in Loki once: not again through 'latest', not again after a restart, and none is missing."""
    assert _keys(loki.query(_EVERYTHING)) == sorted(loki.expected)


def test_an_event_keeps_its_line_and_its_time(loki: Loki) -> None:
    """An entry is the event's own line, at the event's own time."""
    for entry in loki.query(_EVERYTHING):
        event = json.loads(entry.line)
        assert event == loki.expected[key(event)]
        assert entry.ns == nanoseconds(event["ts"])


def test_the_rank_is_no_label(loki: Loki) -> None:
    """A run on one host is one stream, whose labels are job, host and run; event, phase and rank are structured metadata."""
    times = [nanoseconds(event["ts"]) for event in loki.expected.values()]
    series = loki.ask("/loki/api/v1/series", **{"match[]": _EVERYTHING, "start": min(times) - 1, "end": max(times) + 1})["data"]
    assert len(series) == len({event["run"] for event in loki.expected.values()})
    assert {name for one in series for name in one} == {"job", "host", "run", "service_name"}
    assert _keys(loki.query(_EVERYTHING + ' | rank="0" | phase="point"')) == sorted(
        name for name, event in loki.expected.items() if event.get("rank") == 0 and event["phase"] == "point"
    )


@pytest.mark.parametrize("title", sorted(SEARCHES))
def test_a_query_of_the_page_finds_what_it_says(loki: Loki, title: str) -> None:
    """Each query of the page finds the events that its title names, and no other."""
    (query,) = [block for block in fences("loki.md", "logql") if block.startswith("# " + title)]
    entries = loki.query(re.sub(r"^#.*\n", "", query))
    expected = sorted(name for name, event in loki.expected.items() if SEARCHES[title](event))
    # line_format has put words in place of the line: what is left to compare is when and where.
    assert sorted((entry.labels["run"], entry.ns) for entry in entries) == sorted(
        (name[0], nanoseconds(loki.expected[name]["ts"])) for name in expected
    )
    assert expected
