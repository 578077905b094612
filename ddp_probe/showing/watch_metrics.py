"""Writes a look at a running job as metrics, for the textfile collector of node_exporter."""

from typing import Dict, List

from ddp_probe.shared.whole_file import whole_file
from ddp_probe.showing import safe
from ddp_probe.showing.watch.watch_look import Look

_METRICS = (
    ("ddp_probe_rank_steps_total", "counter", "Backward passes that the rank has entered."),
    ("ddp_probe_rank_moved_timestamp_seconds", "gauge", "When the rank entered what it is in, or left its last call."),
    ("ddp_probe_rank_stands_out", "gauge", "1 if watch would mark the rank: the report would name it, or it is last step after step."),
    ("ddp_probe_rank_state", "gauge", "1 for the state that the rank is in: running, ended, failed, gone, stopped and others."),
)


def as_metrics(look: Look, run: str) -> str:
    """Return the text form of Prometheus."""
    lines: List[str] = []
    for number, (name, kind, help_text) in enumerate(_METRICS):
        lines += ["# HELP %s %s" % (name, help_text), "# TYPE %s %s" % (name, kind)]
        for position in look.ranks:
            state = {"state": position.state or "running"} if name.endswith("state") else {}
            value = (position.step, look.when - position.seconds, int(position.rank in look.outliers), 1)[number]
            labels = {"run": run, "rank": str(position.rank), "host": position.host, **state}
            lines.append("%s{%s} %s" % (name, _labels(labels), _exact(value)))
    for name, number_of_run, help_text in (
        ("ddp_probe_look_timestamp_seconds", look.when, "When watch looked last."),
        ("ddp_probe_ranks_absent", len(look.absent), "Ranks of the job without a ledger here."),
        ("ddp_probe_over", int(look.over), "1 if all processes of the run have ended."),
    ):
        lines += ["# HELP %s %s" % (name, help_text), "# TYPE %s gauge" % name]
        lines.append("%s{%s} %s" % (name, _labels({"run": run}), _exact(number_of_run)))
    return "\n".join(lines) + "\n"


def _labels(named: Dict[str, str]) -> str:
    texts = {name: safe.line(text).replace("\\", "\\\\").replace('"', '\\"') for name, text in named.items()}
    return ",".join('%s="%s"' % pair for pair in texts.items())


def _exact(number: float) -> str:
    return "%d" % number if isinstance(number, int) else "%.3f" % number


def write_metrics(path: str, text: str) -> None:
    """Replace the file as a whole, readable by the collector's user as the umask allows: it reads whenever it likes."""
    with whole_file(path) as file:
        file.write(text.encode("utf-8"))
