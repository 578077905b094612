"""The rooms of the reading half, and the pages about them, avoid turns of phrase that a technical editor would change.

Each pattern says what to write instead. Checked are docstrings, comments, string literals with a space in them, and hand-written pages.
Not checked are the regular expressions and example logs of other programs' texts. A room joins by its name in ROOMS.
"""

import io
import re
import tokenize
from pathlib import Path
from typing import Iterator, List, NamedTuple, Tuple

import pytest

ROOMS = (
    "ddp_probe",
    "scripts",
    "sitecustomize_templates",
    "tests/cli",
    "tests/facts",
    "tests/pages",
    "tests/pipelines",
    "tests/read",
    "tests/report",
    "tests/stacks",
    "tests/watch",
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "docs/README.md",
    "docs/contributing/accelerators.md",
    "docs/contributing/adding.md",
    "docs/contributing/decisions",
    "docs/contributing/README.md",
    "docs/hangs.md",
    "docs/contributing/how-it-works.md",
    "docs/launchers",
    "docs/pipelines",
    "docs/contributing/promises.md",
    "docs/schedulers.md",
    "docs/troubleshooting.md",
)


class Turn(NamedTuple):
    """A turn of phrase: what matches it, and what to write instead."""

    pattern: str
    instead: str


TURNS = (
    Turn(r"^Where\b(?!.*\?)", "'If' or 'When' for a condition; 'Where' asks for a place"),
    Turn(r"[.;:] Where\b", "'If' or 'When' for a condition"),
    Turn(r"[;,] (?:and |or |else |but )?where (?:it|there|they|that|this|no|nothing|none|nobody|one|the|an?)\b", "'if' or 'when' for a condition"),
    Turn(r"\b(?:[Nn]one|empty|nothing|0|False|True|only|except|as|name|value|error) where\b", "'if' or 'when' for a condition"),
    Turn(
        r"(?<!\bThere )(?<!\bthere )\b(?:is|are|was|were) no (?!longer\b|more\b|matter\b|such\b|less\b)\w+",
        "'is not a …', 'is not a valid …' or 'there is no …'",
    ),
    Turn(r"\b[Mm]end(?:s|ed|ing)?\b", "'fix'; the change that DDP_PROBE_FIX makes is a remedy"),
    Turn(r"\bmanieth\b", "a count: 'the number of …'"),
    Turn(r"\b[Ss]o many\b", "'this many', 'at most …'"),
    Turn(
        r"\b[Bb]e it (?:that|because|of)\b|\bas ever\b|\ball the same\b|\bwhosoever\b|\bthereof\b|\bfor naught\b",
        "the modern word: 'even if', 'as before', 'anyway'",
    ),
    Turn(r"\b[Ww]ho(?:m)? (?:has|is|was) (?:asked|told)\b|\bnobody (?:tells|knows|can tell)\b", "what is logged, reported or unknown"),
    Turn(r"\b(?:[Tt]ell|[Kk]now) (?:an?|the|every) \w+ (?:that|which|from|of|without|after|by)\b", "'Return whether …'"),
    Turn(r"\bfor ever\b", "'forever', or 'never changes'"),
    Turn(r"\b(?:simply|just|easily|easy)\b", "nothing: what is easy for one reader is not for another"),
)
_ALLOWED = (
    r"where most ranks",  # a place: a column
    r"where a single common word",  # a place: prose
    r"\bjust-",
)


def _prose_of_code(path: Path) -> Iterator[Tuple[int, str]]:
    """Yield docstrings, comments and string literals that are sentences or parts of one."""
    source = path.read_text(encoding="utf-8")
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], re.sub(r"^#\s*(?:noqa: [\w, ]+#)?", "", token.string).strip()
        elif token.type == tokenize.STRING and not re.match(r"(?i)b|rb|br|r", token.string) and " " in token.string.strip("\"' "):
            for number, line in enumerate(token.string.splitlines()):
                yield token.start[0] + number, line.strip().strip("\"' ")


def _prose_of_page(path: Path) -> Iterator[Tuple[int, str]]:
    """Yield the lines of a page outside its indented and fenced code."""
    fenced = False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        fenced ^= line.startswith("```")
        if not fenced and not line.startswith("    "):
            yield number, re.sub(r"`[^`]*`|^[-*|] ", "", line).strip()


def found(path: Path) -> List[str]:
    """Return each turn of phrase in a file as `LINE: text -> what to write`."""
    prose = _prose_of_code(path) if path.suffix == ".py" else _prose_of_page(path)
    hits = []
    for number, text in prose:
        cleaned = re.sub("|".join(_ALLOWED), "", text)
        hits += ["%s:%d: %r -> %s" % (path.name, number, text[:120], turn.instead) for turn in TURNS if re.search(turn.pattern, cleaned)]
    return hits


def _files(room: Path) -> List[Path]:
    return [room] if room.is_file() else sorted(path for path in room.rglob("*") if path.suffix in (".py", ".md"))


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_is_written_in_plain_english(repo: Path, room: str) -> None:
    """No docstring, comment, message or page of a room has one of the turns of phrase in TURNS."""
    files = _files(repo / room)
    assert files
    assert [hit for path in files for hit in found(path)] == []


@pytest.mark.parametrize(
    "text",
    [
        "Where it fails, nothing is written.",
        "Return the rank, or none where there is none.",
        "Return the line; empty where nobody tells.",
        "'xyz' is no time.",
        "They are no ranks.",
        "Mend this and install again.",
        "its how manieth save",
        "So many are shown.",
        "Tell a line that has no sign.",
        "empty where it has ended, be it that nobody has collected it",
    ],
)
def test_a_turn_of_phrase_is_found(tmp_path: Path, text: str) -> None:
    """Each of these, taken from the code before it was rewritten, is found in a docstring, a comment, a message and a page."""
    forms = {"docstring.py": '"""%s"""\n', "comment.py": "x = 1  # %s\n", "message.py": 'raise ValueError("%s")\n', "page.md": "%s\n"}
    for name, form in forms.items():
        (tmp_path / name).write_text(form % text, encoding="utf-8")
        assert found(tmp_path / name), name


@pytest.mark.parametrize(
    "text",
    [
        "No run found.",
        "The value is no longer needed.",
        "The folder where the job was started.",
        "Say which line failed, and where.",
        "It shows where the model is.",
        "recommended, amendment, commended",
        "Return whether a line reports a failure.",
    ],
)
def test_plain_text_is_let_through(tmp_path: Path, text: str) -> None:
    """A place, a negated existence and words that contain another one raise no alarm."""
    (tmp_path / "page.md").write_text(text + "\n", encoding="utf-8")
    (tmp_path / "code.py").write_text('"""%s"""\n' % text, encoding="utf-8")
    assert found(tmp_path / "page.md") + found(tmp_path / "code.py") == []
