"""The hand-written pages, and their fenced and indented blocks."""

import re
from pathlib import Path
from typing import Iterator, List, NamedTuple

REPO = Path(__file__).resolve().parents[2]
_FENCE = re.compile(r" *```(.*)")
_INDENT = 4


class Block(NamedTuple):
    """A block of a page: its page, the number of its first line, what follows the fence, and its text without the indent."""

    page: str
    line: int
    language: str
    text: str

    @property
    def first(self) -> str:
        """The first line, by which a block is named."""
        return self.text.partition("\n")[0]


def pages() -> List[str]:
    """Return every page that is not printed from the code, by its path in the repository."""
    found = [
        REPO / name for name in ("README.md", "README_zh-CN.md", "CONTRIBUTING.md", "SECURITY.md", "skills/ddp-probe/SKILL.md", "tests/README.md")
    ]
    found += sorted((REPO / "docs").rglob("*.md"))
    return [str(path.relative_to(REPO)) for path in found if not text(str(path.relative_to(REPO))).startswith("<!-- Printed by ")]


def text(page: str) -> str:
    """Return a page."""
    return (REPO / page).read_text(encoding="utf-8")


def blocks(page: str) -> Iterator[Block]:
    """Yield the blocks of a page, in order."""
    lines = text(page).split("\n")
    number = 0
    while number < len(lines):
        fence = _FENCE.fullmatch(lines[number])
        indented = number > 0 and not lines[number - 1].strip() and lines[number].startswith(" " * _INDENT)
        end = _end_of_fence(lines, number + 1) if fence else _end_of_indent(lines, number) if indented else number
        if fence:
            yield _block(page, number + 1, fence.group(1).strip(), lines[number + 1 : end])
        elif indented:
            yield _block(page, number, "", lines[number:end])
        number = max(end, number) + bool(fence or not indented)


def _end_of_fence(lines: List[str], number: int) -> int:
    while not _FENCE.fullmatch(lines[number]):
        number += 1
    return number


def _end_of_indent(lines: List[str], number: int) -> int:
    end = number
    while number < len(lines) and (lines[number].startswith(" " * _INDENT) or not lines[number].strip()):
        number += 1
        end = number if lines[number - 1].strip() else end
    return end


def _block(page: str, line: int, language: str, lines: List[str]) -> Block:
    indent = min((len(each) - len(each.lstrip()) for each in lines if each.strip()), default=0)
    return Block(page, line + 1, language, "\n".join(each[indent:].rstrip() for each in lines))
