"""docs/mmengine.md, lightning.md and accelerate.md: each message occurs without its change and has its rule, and with the change the job passes."""

import json
import re
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Set

import pytest
from client_launch import QUIET

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"


class Section(NamedTuple):
    """A message, its rule, and the changes that end it."""

    page: str
    title: str
    message: str
    rule: str  # Empty if no rule knows it: the report then repeats the message.
    changes: List[str]


def _blocks(text: str, language: str) -> List[str]:
    return re.findall(r"```%s\n(.*?)```" % language, text, re.S)


def _sections(page: str) -> List[Section]:
    parts = (DOCS / page).read_text(encoding="utf-8").split("\n## ")[1:-1]
    rules = [re.findall(r"Rule \[(DDP\d{3})\]", part) for part in parts]
    return [
        Section(page, part.split("\n")[0], _blocks(part, "text")[0].rstrip("\n"), "".join(rule), _blocks(part, "diff"))
        for part, rule in zip(parts, rules)
    ]


PAGES = ("mmengine.md", "lightning.md", "accelerate.md")
SECTIONS = [section for page in PAGES for section in _sections(page)]


def _lines(change: str, sign: str) -> str:
    """Return one side of a change, with the lines that both sides have."""
    return "".join(line[1:] for line in change.splitlines(keepends=True) if line[0] in (" ", sign))


def _program(page: str) -> List[str]:
    text = (DOCS / page).read_text(encoding="utf-8").split("\n## The program\n")[1]
    return [_blocks(text, "python")[0], _blocks(text, "sh")[0]]


def _without(section: Section) -> List[str]:
    """Return program and command as they were before the changes of a section."""
    texts = _program(section.page)
    for change in section.changes:
        assert sum(text.count(_lines(change, "+")) for text in texts) == 1, change
        texts = [text.replace(_lines(change, "+"), _lines(change, "-")) for text in texts]
    return texts


@pytest.fixture(scope="module")
def job(interpreter: Path, clean_env: Callable[..., Dict[str, str]]) -> Callable[..., Any]:
    """Run the two texts, a program and its command, in a folder and under the probe."""

    def run(folder: Path, texts: List[str]) -> Any:
        (folder / "train.py").write_text(texts[0], encoding="utf-8")
        env = clean_env(PATH="%s:/usr/bin:/bin" % interpreter, HOME=str(folder), DDP_PROBE="1", **QUIET)
        command = ["timeout", "--kill-after=5", "150", "bash", "-c", texts[1]]
        return subprocess.run(command, env=env, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=170, check=False)

    return run


@pytest.fixture(scope="module")
def trained(job: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], None]:
    """Check, once a page, that its program trains, and goes on from its checkpoint."""
    well: Set[str] = set()

    def of(page: str) -> None:
        folder = tmp_path_factory.mktemp("trained")
        for _ in range(0 if page in well else 2):
            done = job(folder, _program(page))
            assert (done.returncode, done.stdout.count("done training")) == (0, 2), done.stderr
        well.add(page)

    return of


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: "%s-%s" % (section.page[:-3], re.sub(r"\W+", "-", section.title)[:40]))
@pytest.mark.sample(2)
def test_a_message_ends_with_its_change(
    section: Section, job: Callable[..., Any], trained: Callable[[str], None], run_python: Callable[..., Any], tmp_path: Path
) -> None:
    """Before the change the job fails with the message of the page, and log and run have its rule; after it the job trains and goes on."""
    trained(section.page)
    texts, ended = _without(section), []
    while not any(ended) and len(ended) < 2:  # The first one leaves a checkpoint.
        done = job(tmp_path, texts)
        ended.append(done.returncode)
    assert any(ended), done.stderr
    printed = re.sub(r"\x1b\[\d*m", "", done.stderr)
    for line in section.message.split("\n"):
        assert re.search(re.escape(line).replace(r"device_ids\ \[0\]", r"device_ids\ \[[01]\]"), printed), printed
    (tmp_path / "err.log").write_text(done.stderr, encoding="utf-8")
    for path in (tmp_path / "err.log", *sorted((tmp_path / "ddp_probe_runs").glob("2*"))[-1:]):
        said = json.loads(run_python(["-m", "ddp_probe", "report", "--json", path]).stdout)
        assert [finding["id"] for finding in said["findings"]] == [section.rule][: bool(section.rule)], (path, said["undecided"])
        assert section.rule or section.message in json.dumps(said["undecided"])


def test_titles_are_of_the_message() -> None:
    """Each title begins with the name of the exception, and its words are in the message as it is printed."""
    for section in SECTIONS:
        name, _, words = section.title.partition(": ")
        assert re.fullmatch(r"\w+(?:Error|Exception)", name)
        assert [word for word in re.findall(r"[\w'.]+", words.replace("...", " ")) if word not in section.message] == [], section.title


def test_the_index_has_each_message() -> None:
    """docs/troubleshooting.md leads to each section, from words of its message."""
    rows = re.findall(r"^\| (`.+) \| (\[.+) \|$", (DOCS / "troubleshooting.md").read_text(encoding="utf-8"), re.M)
    for section in SECTIONS:
        anchor = re.sub(r"[^\w\- ]", "", section.title.lower()).replace(" ", "-")
        (words,) = [words for words, links in rows if "(%s#%s)" % (section.page, anchor) in links][:1]
        pieces = [piece for quoted in re.findall(r"`` ?(.+?) ?``|`(.+?)`", words) for piece in "".join(quoted).split("…")]
        assert any(piece.strip() in section.message for piece in pieces), (words, section.message)


def test_versions_are_those_of_this_environment() -> None:
    """The versions that a page names are the ones that are installed."""
    for page in PAGES:
        name, version, torch = re.findall(r"messages are from (\w+) ([\d.]+) with torch ([\d.]+\d)", (DOCS / page).read_text(encoding="utf-8"))[0]
        assert metadata.version(name) == version
        assert metadata.version("torch").startswith(torch)
