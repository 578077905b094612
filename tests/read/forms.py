"""The forms in which people paste a log, and the known logs to put into them: `python tests/read/forms.py --help` counts what each form costs.

A form takes lines, each with its number in the original, and returns lines with these numbers. It changes how a text is set, never what it says.
"""

# ruff: noqa: RUF001  # What editors and programs print.

import argparse
import html
import json
import random
import re
import sys
import zlib
from collections import Counter
from pathlib import Path
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS.parent)]

from ddp_probe.judging.judge import judge  # noqa: E402  # found from the checkout
from ddp_probe.reading import text as plain_log  # noqa: E402
from ddp_probe.reading.load_run import assemble  # noqa: E402
from ddp_probe.reading.model import Run  # noqa: E402

Lines = List[Tuple[int, str]]
Form = Callable[[Lines, random.Random], Lines]


class Text(NamedTuple):
    """A log that is known."""

    name: str
    lines: Tuple[str, ...]
    shown: bool = True  # Whether a test may print its name.
    healthy: bool = False  # Whether nothing in it has failed.


class Said(NamedTuple):
    """What a diagnosis says, without what a form may change."""

    cause: str
    ranks: Tuple[int, ...]
    words: str
    line: int  # Of the original; 0 if the finding names none.


# --- the texts


def texts() -> List[Text]:
    """Return every known plain log of the repository, short enough to be pasted."""
    found = [*_recorded(), *_examples(), *_collected(sorted((TESTS / "diagnose" / "collected").glob("*.jsonl")))]
    return [text for text in found if text.lines and sum(map(len, text.lines)) < 20000]


def _recorded() -> Iterator[Text]:
    for path in sorted((TESTS / "recorded").glob("*/*/output.txt")):
        yield Text(
            "/".join(path.parts[-3:-1]),
            tuple(path.read_text(encoding="utf-8", errors="replace").splitlines()),
            healthy=path.parent.name.startswith("00_"),
        )


def _examples() -> Iterator[Text]:
    for path in sorted((TESTS / "rules").glob("*/*.log")):
        log = path.read_text(encoding="utf-8").partition("\n\n")[2]
        if not log.lstrip().startswith(('{"event"', "ledger")):
            yield Text("/".join(path.parts[-2:]), tuple(log.splitlines()))


def _collected(files: List[Path]) -> Iterator[Text]:
    for path in files:
        for row in path.read_text(encoding="utf-8").splitlines():
            case = json.loads(row)
            yield Text(
                "%s/%s" % (path.stem, case["id"]),
                tuple(case["error_text"].splitlines()),
                not str(case.get("part")).startswith("unseen"),
                case["cause_key"] in (None, "none"),
            )


def said(lines: Lines) -> Optional[Said]:
    """Return what the diagnosis of these lines says, with the line of the original."""
    run = Run()
    run.texts.append(plain_log.read([text.encode("utf-8", "replace") + b"\n" for _, text in lines], "example"))
    findings = judge(assemble(run, [])).findings
    if not findings:
        return None
    place = next((seen.line for seen in findings[0].evidence if seen.line), 0)
    return Said(findings[0].cause, tuple(findings[0].ranks), _bare(findings[0].verdict), lines[place - 1][0] if place else 0)


_QUOTES = {ord(mark): "'" for mark in '‘’“”"`'}
_MARKS = {ord(wide): plain for wide, plain in zip("：（），；", ":(),;")}


def _bare(words: str) -> str:
    return re.sub(r"\s+|…", "", words.translate(_QUOTES).translate(_MARKS))


# --- the forms


def _each(change: Callable[[str], str]) -> Form:
    return lambda lines, chance: [(number, change(text)) for number, text in lines]


def _within(head: List[str], tail: List[str], change: Callable[[str], str] = str) -> Form:
    return lambda lines, chance: [*((0, text) for text in head), *((number, change(text)) for number, text in lines), *((0, text) for text in tail)]


def _numbered(lines: Lines, chance: random.Random) -> Lines:
    begin = chance.choice((1, 97, 4210))
    return [(number, "%6d\t%s" % (begin + index, text)) for index, (number, text) in enumerate(lines)]


def _listed(lines: Lines, chance: random.Random) -> Lines:
    return [(number, "%d. %s" % (index, text)) for index, (number, text) in enumerate(lines, 1)]


def _spaced(lines: Lines, chance: random.Random) -> Lines:
    return [one for number, text in lines for one in ((number, text), (number, ""))]


def _colours(lines: Lines, chance: random.Random) -> Lines:
    shades = ("\x1b[31m", "\x1b[1;35m", "\x1b[0m", "\x1b[K", "\x1b[38;5;196m", "\x1b[2m")

    def painted(text: str) -> str:
        return re.sub(r"\b(?=\w)", lambda _: chance.choice(shades) if chance.random() < 0.3 else "", text) + "\x1b[0m"

    return [(number, painted(text)) for number, text in lines]


_BAR = "%3d%%|%-10s| %d/100 [00:%02d<00:%02d, 1.31s/it]"


def _bar(chance: random.Random) -> str:
    done = chance.randrange(100)
    return _BAR % (done, "█" * (done // 10), done, done % 60, 60 - done % 60)


def _bars(lines: Lines, chance: random.Random) -> Lines:
    return [(number, ("\r" + _bar(chance) + "\r" + text) if chance.random() < 0.4 else text) for number, text in lines]


def _bars_between(lines: Lines, chance: random.Random) -> Lines:
    return [one for number, text in lines for one in ([(number, _bar(chance))] if chance.random() < 0.2 else []) + [(number, text)]]


def _bar_in_line(lines: Lines, chance: random.Random) -> Lines:
    """Print a bar between two halves of a line."""
    found: Lines = []
    for number, text in lines:
        at = chance.randrange(len(text)) if len(text) > 40 and chance.random() < 0.3 else 0
        found += [(number, text[:at] + _bar(chance)), (number, text[at:])] if at else [(number, text)]
    return found


def _cut_at(width: int) -> Form:
    def form(lines: Lines, chance: random.Random) -> Lines:
        return [(number, text[at : at + width]) for number, text in lines for at in range(0, max(len(text), 1), width)]

    return form


def _folded(text: str, width: int, chance: Optional[random.Random] = None) -> Iterator[str]:
    """Break a line at spaces, as a chat window does: a line is as long as its letters are wide."""
    while len(text) > width:
        room = width if chance is None else int(width * chance.uniform(0.85, 1.1))
        at = text.rfind(" ", 1, room)
        if at <= 0 or not text[:at].strip():
            at = room - 1
        yield text[: at + 1].rstrip()
        text = text[at + 1 :]
    yield text


def _chat(width: int) -> Form:
    return lambda lines, chance: [(number, part) for number, text in lines for part in _folded(text, width, chance)]


def _panel(lines: Lines, chance: random.Random) -> Lines:
    width = chance.choice((80, 100, 120))
    inner = [(number, "│ %-*s │" % (width, part)) for number, text in lines for part in _folded(text, width)]
    return [(0, "╭%s╮" % ("─ log " + "─" * (width - 4))), *inner, (0, "╰%s╯" % ("─" * (width + 2)))]


def _stars(lines: Lines, chance: random.Random) -> Lines:
    return [(0, "*" * 80), *((number, "* %-76s *" % text) for number, text in lines), (0, "*" * 80)]


def _table(lines: Lines, chance: random.Random) -> Lines:
    return [(0, "| log |"), (0, "|---|"), *((number, "| %s |" % text.replace("|", "\\|")) for number, text in lines)]


def _ticks(lines: Lines, chance: random.Random) -> Lines:
    return [(number, "`%s`" % text if text.strip() else text) for number, text in lines]


def _stamped(form: str) -> Form:
    """Put a time before each line; `form` has one place for seconds and one for the text."""
    return lambda lines, chance: [(number, form % (index % 60, text)) for index, (number, text) in enumerate(lines)]


def _json(lines: Lines, chance: random.Random) -> Lines:
    when = "2026-11-25T12:31:%02d.123456789Z"
    return [(number, json.dumps({"log": text + "\n", "stream": "stderr", "time": when % (index % 60)})) for index, (number, text) in enumerate(lines)]


def _loki(lines: Lines, chance: random.Random) -> Lines:
    labels = {"app": "train", "pod": "train-0"}
    return [(number, json.dumps({"labels": labels, "line": text, "timestamp": "2026-11-25T12:31:03Z"})) for number, text in lines]


def _hidden(lines: Lines, chance: random.Random) -> Lines:
    """Hide the middle frames of long tracebacks behind a mark."""
    mark = chance.choice(("… 17 lines hidden", "[...]", "...", "    ... 12 frames omitted ..."))
    frames = [index for index, (_, text) in enumerate(lines) if re.search(r'^\W*(?:\[rank\d+\]:)?\s*File "', text)]
    runs = [index for index in frames if index + 2 in frames and index + 4 in frames and index - 2 in frames]
    if not runs:
        return [one for index, one in enumerate(lines) for one in ([(0, mark)] if index in frames[1:2] else []) + [one]]
    at = chance.choice(runs)
    return [*lines[:at], (0, mark), *lines[at + 2 :]]


def _powershell(lines: Lines, chance: random.Random) -> Lines:
    """PowerShell makes an error record of what a program writes to stderr: it names the program, and explains itself after the first line."""
    told = (
        "At line:1 char:1",
        "+ python train.py",
        "+ ~~~~~~~~~~~~~~~",
        "    + CategoryInfo          : NotSpecified: (%s:String) [], RemoteException",
    )
    first = next((index for index, (_, text) in enumerate(lines) if text.startswith("Traceback (")), 0)
    whole = lines[first][1]
    short = whole if len(whole) <= 40 else whole[:18] + "..." + whole[-19:]
    record = [(0, text % short if "%s" in text else text) for text in told] + [(0, "    + FullyQualifiedErrorId : NativeCommandError"), (0, " ")]
    return [*lines[:first], (lines[first][0], "python : " + whole), *record, *lines[first + 1 :]]


def _two_at_once(lines: Lines, chance: random.Random) -> Lines:
    """Two processes print the same: a line may begin before the other one's line break."""
    joined = (([(number, text + text), (number, "")] if chance.random() < 0.3 else [(number, text)] * 2) for number, text in lines)
    return [one for pair in joined for one in pair]


def _half_lines(lines: Lines, chance: random.Random) -> Lines:
    """Two processes print the same: a line of one stands between two halves of a line of the other."""
    found: Lines = []
    for number, text in lines:
        at = chance.randrange(len(text)) if len(text) > 20 and chance.random() < 0.2 else 0
        found += [(number, text[:at] + text), (number, text[at:])] if at else [(number, text)] * 2
    return found


def _without_head(lines: Lines, chance: random.Random) -> Lines:
    """Cut off the first tenth, in the middle of a line."""
    at = len(lines) // 10
    number, text = lines[at]
    return [(number, text[len(text) // 2 :]), *lines[at + 1 :]]


def _without_tail(lines: Lines, chance: random.Random) -> Lines:
    """Cut off the last tenth, in the middle of a line."""
    at = len(lines) - 1 - len(lines) // 10
    number, text = lines[at]
    return [*lines[:at], (number, text[: len(text) // 2])]


def _curly(text: str) -> str:
    text = re.sub(r"(?<![\w'\"])'(?=\S)", "‘", text).replace("'", "’")
    return re.sub(r"(?<![\w\"])\"(?=\S)", "“", text).replace('"', "”")


FORMS: Dict[str, Form] = {
    "quote": _each(lambda text: "> " + text),
    "quote-twice": _each(lambda text: ">> " + text),
    "quote-apart": _each(lambda text: "> > " + text),
    "bar": _each(lambda text: "| " + text),
    "bullet": _each(lambda text: "- " + text),
    "indent": _each(lambda text: "    " + text),
    "flat": _each(str.lstrip),
    "numbers": _numbered,
    "list": _listed,
    "fence": _within(["We see this since Monday:", "", "```text"], ["```", "", "Any ideas?"]),
    "ticks": _ticks,
    "entities": _within(["<details><summary>log</summary>", "<pre><code>"], ["</code></pre></details>"], html.escape),
    "breaks": _each(lambda text: html.escape(text, quote=False).replace("  ", "&nbsp; ") + "<br/>"),
    "paragraphs": _each(lambda text: "<p>%s</p>" % html.escape(text)),
    "panel": _panel,
    "stars": _stars,
    "table": _table,
    "colours": _colours,
    "bars": _bars,
    "bars-between": _bars_between,
    "bar-in-line": _bar_in_line,
    "crlf": _each(lambda text: text + "\r"),
    "nbsp": _each(lambda text: text.replace(" ", "\xa0")),
    "full-width": _each(lambda text: re.sub(r": ", "：", text).replace("(", "（").replace(")", "）").replace(", ", "，")),
    "curly": _each(_curly),
    "spaced": _spaced,
    "cut-80": _cut_at(80),
    "cut-100": _cut_at(100),
    "cut-120": _cut_at(120),
    "cut-128": _cut_at(128),
    "cut-132": _cut_at(132),
    "cut-160": _cut_at(160),
    "chat-60": _chat(60),
    "chat-90": _chat(90),
    "compose": _each(lambda text: "trainer-1  | " + text),
    "kubectl": _each(lambda text: "[pod/train-0/pytorch] " + text),
    "pdsh": _each(lambda text: "gpu07: " + text),
    "ray": _each(lambda text: "(RayTrainWorker pid=4711, ip=10.0.0.7) " + text),
    "journald": _stamped("Nov 25 12:31:%02d gpu07 python[4711]: %s"),
    "syslog": _stamped("<11>1 2026-11-25T12:31:%02d.123456+00:00 gpu07 train 4711 - - %s"),
    "cri": _stamped("2026-11-25T12:31:%02d.123456789Z stderr F %s"),
    "actions": _stamped("2026-11-25T12:31:%02d.1234567Z %s"),
    "gh-view": _stamped("train\tRun torchrun\t2026-11-25T12:31:%02d.1234567Z %s"),
    "gitlab": _stamped("2026-11-25T12:31:%02d.123456Z 01E %s"),
    "fluent-bit": _json,
    "loki": _loki,
    "hidden": _hidden,
    "powershell": _powershell,
    "two-at-once": _two_at_once,
    "half-lines": _half_lines,
    "no-head": _without_head,
    "no-tail": _without_tail,
}  # fmt: skip


def formed(text: Text, names: Tuple[str, ...], seed: int) -> Lines:
    """Return a text in these forms, one after the other; the same for the same seed."""
    lines: Lines = [(number, line) for number, line in enumerate(text.lines, 1)]
    for name in names:
        lines = FORMS[name](lines, random.Random(zlib.crc32(("%s %s %d" % (text.name, name, seed)).encode())))  # Drawn cases.
    return lines


def fault(plain: Optional[Said], text: Text, names: Tuple[str, ...], seed: int) -> str:
    """Return what a text in these forms says otherwise than the plain one; empty if it says the same."""
    got = said(formed(text, names, seed))
    if plain is None or got is None:
        return "" if plain is got else "finds %s" % got.cause if got is not None else "silent"
    if got.cause != plain.cause:
        return "cause %s" % got.cause
    if got.ranks != plain.ranks:
        return "ranks %s for %s" % (got.ranks, plain.ranks)
    if got.words != plain.words:
        return "words"
    return "" if got.line == plain.line else "line %d for %d" % (got.line, plain.line)


def pairs(count: int, seed: int) -> List[Tuple[str, ...]]:
    """Return that many drawn pairs of forms."""
    chance = random.Random(seed)  # Drawn cases.
    return [tuple(chance.sample(list(FORMS), 2)) for _ in range(count)]


def main() -> int:
    """Count, by form, the texts that say something else in it."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--form", action="append", choices=list(FORMS), help="only this form")
    parser.add_argument("--pairs", type=int, default=0, metavar="N", help="N drawn pairs instead, a text each")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--cases", action="append", default=[], metavar="FILE", help="more cases, one JSON object a line")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="every Nth text")
    parser.add_argument("--show", action="store_true", help="print what differs, except in what nobody may read")
    asked = parser.parse_args()
    known = [*texts(), *_collected([Path(file) for file in asked.cases])][:: asked.every]
    plain = {text.name: said([(number, line) for number, line in enumerate(text.lines, 1)]) for text in known}
    chosen: List[Tuple[Text, Tuple[str, ...]]] = [(text, (name,)) for name in asked.form or FORMS for text in known]
    if asked.pairs:
        chosen = list(zip(random.Random(asked.seed).choices(known, k=asked.pairs), pairs(asked.pairs, asked.seed)))  # Drawn cases.
    bad: Counter[str] = Counter()
    false: Counter[str] = Counter()
    for text, names in chosen:
        wrong = fault(plain[text.name], text, names, asked.seed)
        for name in names if wrong else ():
            (bad if plain[text.name] is not None else false)[name] += 1
        if wrong and asked.show:
            print("%-28s %-50s %s" % ("+".join(names), text.name if text.shown else "(unseen)", wrong if text.shown else ""))
    found = sum(1 for name in plain if plain[name] is not None)
    print("%d texts with a finding, %d without, %d forms, seed %d" % (found, len(plain) - found, len(chosen), asked.seed))
    for name in asked.form or FORMS:
        print("%-14s %4d differ %4d false" % (name, bad[name], false[name]))
    print("%-14s %4d differ %4d false" % ("all", sum(bad.values()), sum(false.values())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
