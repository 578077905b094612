"""docs/launchers: each launcher has a page, and each of its lines is run by a client, or the page says that it is not."""

import re
from typing import Dict, List, Set, Tuple

import pytest
from client_table import CLIENTS, Client
from launcher_pages import FOLDER, blocks

# Blocks that no client runs, each with what its page says of it.
_NOT_RUN: Dict[Tuple[str, str], str] = {
    ("ray-train", "cluster"): "The command for a cluster was not run.",
}
_STAND_INS = {"srun", "mpirun", "mmengine", "deepspeed", "ray-train", "kubernetes"}
PAGES = sorted(path.stem for path in FOLDER.glob("*.md") if path.stem != "README")


def _read(page: str) -> str:
    return (FOLDER / (page + ".md")).read_text(encoding="utf-8")


def _rows() -> Dict[str, List[str]]:
    """Return the table: a page, and the cells of its row."""
    rows = [line.strip("| ").split(" | ") for line in _read("README").splitlines() if line.startswith("| [")]
    return {re.findall(r"\]\(([\w-]+)\.md\)", cells[0])[0]: cells for cells in rows}


def _of(page: str) -> List[Client]:
    return [client for client in CLIENTS if client.page[0] == page]


def test_each_launcher_of_the_table_has_a_page() -> None:
    """The table links to every page of the folder, and to no other."""
    assert sorted(_rows()) == PAGES


@pytest.mark.parametrize("page", PAGES)
def test_each_line_is_run_or_said_not_to_be(page: str) -> None:
    """A block that turns the probe on has a name, and a client runs it; if none does, the page says so in these words."""
    text = _read(page)
    fences = re.findall(r"^```(?:sh|yaml)( [\w-]+)?\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert [body for name, body in fences if "DDP_PROBE" in body and not name] == []
    run: Set[str] = {client.page[1] for client in _of(page)} | ({"start"} if page == "kubernetes" else set())
    told = {block for at, block in _NOT_RUN if at == page}
    assert set(blocks(page)) == run | told
    assert not run & told
    assert all(words in text for (at, _), words in _NOT_RUN.items() if at == page)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_says_how_it_is_tested(page: str) -> None:
    """Each page ends with how it is tested; a page whose launcher is not installed here names the stand-in, and the table the environment."""
    last = _read(page).rstrip().split("\n\n")[-1]
    assert last.startswith("Tested: ")
    assert ("stand-in" in last or "scripts that do" in last) == (page in _STAND_INS), last
    tested = _rows()[page][2]
    assert ("recorded environment" in tested or "stand-in" in tested) == (page in _STAND_INS)


@pytest.mark.parametrize("page", PAGES)
def test_the_names_of_runs(page: str) -> None:
    """What the clients of a page check of a run's name is what the page shows of it."""
    shown = re.findall(r"^ddp_probe_runs/(\S+)/|^/runs/(\S+)/|`(slurm-\S+)`", _read(page), re.MULTILINE)
    names = [name for each in shown for name in each if name]
    as_others = re.findall(r"(?:[Aa]s with|are those of) \[\w+\]\((\w+)\.md\)", _read(page))
    for client in _of(page):
        assert any(re.fullmatch(client.named, name) for name in names) or any(client.named == other.named for at in as_others for other in _of(at))


@pytest.mark.parametrize("page", [*PAGES, "README"])
def test_links_lead_somewhere(page: str) -> None:
    """A page that another page links to is there."""
    assert [link for link in re.findall(r"\]\(([^)#]+)\)", _read(page)) if not (FOLDER / link).exists()] == []
