"""The lines of docs/launchers, as they are run here: what a page shows a person is what a client starts.

A block of a page that starts a job has a name after its language: ```sh one-host. A comment such as "# node1" begins the lines of one host.
"""

import re
from pathlib import Path
from typing import Dict, List, Tuple

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "launchers"
_BLOCK = re.compile(r"^```\w+ ([\w-]+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_HOST = re.compile(r"^# \S+\n", re.MULTILINE)
_REPORT = re.compile(r"^python -m ddp_probe report *(.*)\n", re.MULTILINE)
# Of any page: a host and a port that a test has not got.
_ANYWHERE = (("node1", "127.0.0.1"), ("29500", "{port}"))

Changes = Tuple[Tuple[str, str], ...]


def blocks(page: str) -> Dict[str, str]:
    """Return the named blocks of a page, by their names."""
    return dict(_BLOCK.findall((FOLDER / (page + ".md")).read_text(encoding="utf-8")))


def adapted(page: str, block: str, program: str, changes: Changes) -> str:
    """Return a block for this program, with these changes in its text; {port} is left open."""
    text = blocks(page)[block].replace("{", "{{").replace("}", "}}")
    for old, new in changes:
        if old not in text:
            raise LookupError("%s: the block %s has no %r in it." % (page, block, old))
        text = text.replace(old, new)
    for old, new in (*_ANYWHERE, ("train.py", program)):
        text = text.replace(old, new)
    return text


def command(page: str, block: str, program: str, changes: Changes) -> str:
    """Return one line of bash that does what a block says, on all of its hosts at the same time."""
    text = _REPORT.sub("", adapted(page, block, program, changes))
    return together([lines.strip().replace("\n", "; ") for lines in _HOST.split(text) if lines.strip()])


def reads(page: str, block: str) -> str:
    """Return what a block tells report to read; empty for the newest run."""
    found = _REPORT.search(blocks(page)[block])
    return found.group(1) if found else ""


def together(lines: List[str]) -> str:
    """Start two lines side by side, the first one last, and end with 1 if one of them failed."""
    if len(lines) == 1:
        return lines[0]
    first, second = lines
    return "{{ %s; }} & {{ %s; }}; a=$?; wait $!; b=$?; [ $a = 0 ] && [ $b = 0 ]" % (second, first)
