"""Reads deciding_snippets.txt: training code with marks, and what is asked of it."""

import ast
import re
from pathlib import Path
from typing import Dict, List, NamedTuple, Optional, Tuple

from ddp_probe.reading.job_source import JobFile
from ddp_probe.reading.whole_ledger import LedgerSite
from ddp_probe.standing.source_trees import SourceTrees

FILE = "train.py"
_MARK = re.compile(r"  #@ (.*)$")


class Snippet(NamedTuple):
    """One snippet: its source, the ways of A, B and S, and the lines that can have decided, the most likely first if that is known."""

    name: str
    verdict: str
    source: str
    ways: Dict[str, Optional[Tuple[LedgerSite, ...]]]
    lines: List[int]
    first: int
    asked: Dict[str, str]

    def sources(self, when: float = 2.0) -> SourceTrees:
        """Return the snippet as the source of a job that was written at the time 1."""
        return SourceTrees(when, lambda path: JobFile(self.source, 1.0) if path == FILE else None)


def snippets() -> Dict[str, Snippet]:
    """Return all snippets by name."""
    text = (Path(__file__).parent / "deciding_snippets.txt").read_text(encoding="utf-8")
    parts = re.split(r"^=== (.*)\n", text, flags=re.MULTILINE)[1:]
    read = [_snippet(title, body) for title, body in zip(parts[::2], parts[1::2])]
    return {snippet.name: snippet for snippet in read}


def _snippet(title: str, body: str) -> Snippet:
    name, _, asked = title.rpartition(" : ")
    verdict, *pairs = asked.split()
    wanted = dict(pair.split("=", 1) for pair in pairs)
    lines = body.rstrip("\n").split("\n")
    marks: Dict[str, Dict[int, int]] = {"A": {}, "B": {}, "S": {}}
    decides: List[int] = []
    first = 0
    for number, line in enumerate(lines, 1):
        match = _MARK.search(line)
        for mark in match.group(1).split() if match else ():
            if mark[0] == "D":
                decides.append(number)
                first = number if mark == "D!" else first
            else:
                marks[mark[0]][int(mark[1:] or 1)] = number
    source = "\n".join(_MARK.sub("", line) for line in lines) + "\n"
    ways: Dict[str, Optional[Tuple[LedgerSite, ...]]] = {}
    for letter, frames in marks.items():
        ways[letter] = tuple(LedgerSite(FILE, frames[at], wanted.get("function") or _function(source, frames[at])) for at in sorted(frames))
        if letter == "S" and not frames:
            ways[letter] = None
        if letter + "+" in wanted:
            file, number, function = wanted[letter + "+"].split(":")
            ways[letter] = (*(ways[letter] or ()), LedgerSite(file, int(number), function))
    return Snippet(name, verdict, source, ways, decides, first, wanted)


def _function(source: str, line: int) -> str:
    """Return the name of the code object of a line, as a frame has it."""
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return ""
    functions = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))]
    holders = [node for node in functions if node.lineno <= line <= (node.end_lineno or 0)]
    if not holders:
        return "<module>"
    return getattr(max(holders, key=lambda node: (node.lineno, node.col_offset)), "name", "<lambda>")
