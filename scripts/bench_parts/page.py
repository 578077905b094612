"""The table on a terminal, and docs/contributing/performance.md: both from what was measured, and no more."""

from typing import Any, Dict, Iterator, List

_NOTE = "<!-- Printed by scripts/bench --page from docs/contributing/performance.json. Run scripts/bench --page to measure again. -->\n"
_OF_THE_MACHINE = ("cpu", "cores", "python", "load_before", "load_after")
_INTRO = """
Every number comes from one run of `scripts/bench` on one machine: what is compared takes turns (A B, B A, ...) and shares whatever else the
machine does. A result is taken from the two minima, because another program adds time and never takes any away. The spread is the middle
half of the rounds, each round compared with itself: where it is wider than the distance to the goal, the machine was too busy to say more.
"""


def number(value: float, kind: str) -> str:
    """Return a result as it is read: a ratio has four digits, a time two behind the point."""
    return ("%.3f" if kind == "ratio" else "%+.2f" if kind == "difference" else "%.2f") % value


def with_unit(row: Dict[str, Any], value: float) -> str:
    """Return a result with its unit; a ratio has none."""
    text = number(value, row["kind"])
    return text if row["kind"] == "ratio" else "%s %s" % (text, row["unit"])


def verdict(row: Dict[str, Any]) -> str:
    """Return whether the goal is met."""
    return {True: "met", False: "not met", None: ""}[row["met"]]


def cells(row: Dict[str, Any]) -> List[str]:
    """Return a row of the table as text: what, goal, result, verdict, minima, median, spread, CPU time's own result, rounds."""
    goal = "" if row["goal"] is None else "≤ " + with_unit(row, row["goal"])
    if row["result"] is None:
        return [row["what"], goal, "not measured", "", "", "", "", "", ""]
    shown = row[row["clock"]]
    minima = [number(side["minimum"], "cost") for side in (shown["off"], shown["on"]) if side is not None]
    pairs = shown["paired"]
    spread = "%s … %s" % (number(pairs["low"], row["kind"]), number(pairs["high"], row["kind"]))
    other = row["cpu" if row["clock"] == "wall" else "wall"]["result"]
    return [
        row["what"],
        goal,
        with_unit(row, row["result"]),
        verdict(row),
        " → ".join(minima) + " " + row["unit"],
        number(pairs["median"], row["kind"]),
        spread,
        number(other, row["kind"]) + (" CPU" if row["clock"] == "wall" else " wall"),
        str(row["rounds"]),
    ]


HEADS = ("row", "goal", "result", "", "minima", "median", "middle half", "other clock", "rounds")


def terminal(found: Dict[str, Any]) -> str:
    """Return the table for a terminal."""
    lines = [list(HEADS)] + [cells(row) for row in found["rows"]]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEADS))]
    text = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines]
    notes = ["%s: %s" % (row["what"], row["note"]) for row in found["rows"] if row["note"]]
    return "\n".join([machine(found["machine"])] + text + notes) + "\n"


def machine(known: Dict[str, Any]) -> str:
    """Return the machine in one line."""
    parts = ["%s, %s cores" % (known["cpu"], known["cores"]), "Python %s" % known["python"]]
    parts += ["%s %s" % (name, known[name]) for name in known if name not in _OF_THE_MACHINE and known[name]]
    return "%s; load average %s before and %s after." % (", ".join(parts), known["load_before"], known["load_after"])


def page(found: Dict[str, Any]) -> str:
    """Return docs/contributing/performance.md."""
    rows = found["rows"]
    lines = [_NOTE, "# What it costs", _INTRO.rstrip(), "", "Machine: " + machine(found["machine"]), ""]
    lines += ["| %s |" % " | ".join(HEADS), "|" + "---|" * len(HEADS)]
    lines += ["| %s |" % " | ".join(_prose(cell) for cell in cells(row)) for row in rows if "series" not in row]
    lines += _scale([row for row in rows if "series" in row])
    lines += ["", "## How each row is measured", "", *_explained(rows)]
    missed = list(_missed(rows))
    lines += ["", "## Goals that are not met", "", *(missed or ["None."])]
    return "\n".join(lines) + "\n"


def _scale(rows: List[Dict[str, Any]]) -> List[str]:
    """Return the table that has a line for each number of ranks and a column for each series."""
    if not rows:
        return []
    columns = list(dict.fromkeys((row["series"], row["unit"]) for row in rows))
    found = {(row["ranks"], row["series"], row["unit"]): row["result"] for row in rows}
    heads = ["ranks", *("%s (%s)" % column for column in columns)]
    lines = ["", "## How it grows with the ranks", "", "| %s |" % " | ".join(heads), "|" + "---:|" * len(heads)]
    for ranks in sorted({row["ranks"] for row in rows}):
        values = [found.get((ranks, *column)) for column in columns]
        lines.append("| %d | %s |" % (ranks, " | ".join("not measured" if value is None else "%.2f" % value for value in values)))
    return lines


def _explained(rows: List[Dict[str, Any]]) -> Iterator[str]:
    told = set()
    for row in rows:
        if "series" in row and row["series"] in told and not row["note"]:
            continue
        told.add(row.get("series"))
        clock = "CPU" if row["clock"] == "cpu" else "Wall"
        yield "- **%s**: %s %s time.%s" % (_prose(row.get("series", row["what"])), row["how"], clock, " " + row["note"] if row["note"] else "")


def _missed(rows: List[Dict[str, Any]]) -> Iterator[str]:
    for row in rows:
        if row["met"] is False:
            goal, value = with_unit(row, row["goal"]), with_unit(row, row["result"])
            yield "- **%s**: %s measured, the goal is %s. %s" % (_prose(row["what"]), value, goal, row["limit"])


def _prose(text: str) -> str:
    return text.replace("|", "\\|")
