"""Each block of each page is claimed by one check, and holds it."""

import re
import shutil
import subprocess
import textwrap
from typing import List

import page_commands
import pytest
from block_table import CLAIMS, SHELL, ByTest, Illustration, PrintedFor, claims
from page_blocks import REPO, Block, blocks, pages, text
from page_scene import Scene
from printed_blocks import CARDS_UNKNOWN

BLOCKS = [block for page in pages() for block in blocks(page)]


def _are(*kinds: type) -> List[Block]:
    return [block for block in BLOCKS if len(claims(block)) == 1 and isinstance(claims(block)[0].how, kinds)]


def _id(block: Block) -> str:
    return "%s:%d" % (block.page, block.line)


_SHELL = [block for block in _are(str) if claims(block)[0].how == SHELL]
_PRINTED = [block for block in BLOCKS if len(claims(block)) == 1 and (callable(claims(block)[0].how) or isinstance(claims(block)[0].how, PrintedFor))]


def test_every_block_has_one_claim() -> None:
    """No block of a page is without a check, and none has two."""
    assert len(BLOCKS) > 90
    wrong = [(block.page, block.line, block.first, len(claims(block))) for block in BLOCKS if len(claims(block)) != 1]
    assert wrong == []


def test_every_claim_has_a_block() -> None:
    """No claim speaks of a block that is gone."""
    assert [(claim.page, claim.first, claim.language) for claim in CLAIMS if not any(claim.holds(block) for block in BLOCKS)] == []


@pytest.mark.parametrize("block", _SHELL, ids=_id)
def test_a_shell_block_can_be_typed(block: Block) -> None:
    """bash can read the lines, and each command of the probe in them is one that its parser takes."""
    done = subprocess.run(["bash", "-n"], input=block.text, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert [said for said in map(page_commands.complaint, page_commands.typed(block.text)) if said] == []
    assert [name for name in re.findall(r"(?:\./|python )(scripts/\w+)", block.text) if not (REPO / name).exists()] == []


@pytest.mark.parametrize("block", _PRINTED, ids=_id)
def test_a_printed_block_is_what_is_printed(block: Block, scene: Scene) -> None:
    """Run now, the commands of a block print what the page shows, to the last character."""
    how = claims(block)[0].how
    printed = how.by(scene, block.text) if isinstance(how, PrintedFor) else how(scene)  # type: ignore[operator]  # _PRINTED has no other kind
    assert textwrap.dedent(printed) == block.text


@pytest.mark.skipif(shutil.which("jq") is None, reason="the lines of the page need jq")
def test_jq_prints_what_how_it_works_shows(scene: Scene) -> None:
    """The lines with jq, typed into a shell in the folder of the run, print the lines below them."""
    run = scene.job(CARDS_UNKNOWN)
    typed = "".join(block.text + "\n" for block in BLOCKS if block.page.endswith("how-it-works.md") and " | jq " in block.text)
    lines = [line for line in typed.splitlines() if not line.startswith("$ cd ")]
    commands, shown = lines[::2], lines[1::2]
    assert len(commands) > 4
    script = "\n".join(command.replace("$ ", "", 1) for command in commands)
    done = subprocess.run(["bash", "-c", script], cwd=run, capture_output=True, text=True, timeout=60, check=True)
    assert scene.of_pages(done.stdout).splitlines() == shown


def test_a_test_that_runs_blocks_names_their_page() -> None:
    """The test file of a claim is there, and has the name of the page or of its folder in it."""
    for block in _are(ByTest):
        how = claims(block)[0].how
        assert isinstance(how, ByTest)
        code = (REPO / how.path).read_text(encoding="utf-8")
        parts = block.page.split("/")
        assert any(name in code for name in (parts[-1], "/".join(parts[:2]))), (block.page, how.path)


def test_an_illustration_says_why() -> None:
    """What nothing can print is rare, and each says why in a sentence."""
    reasons = {claim.how.because for claim in CLAIMS if isinstance(claim.how, Illustration)}
    assert len(reasons) <= 3
    assert all(len(reason.split()) > 6 and reason.endswith(".") for reason in reasons)


def test_the_lines_that_stay_of_a_run_are_real() -> None:
    """The files that how-it-works.md lists of a run have the names that recorded runs have."""
    (tree,) = [block.text for block in BLOCKS if block.first.startswith("ddp_probe_runs/latest/")]
    names = [line.split()[0] for line in tree.splitlines()[1:]]
    recorded = [str(path.relative_to(path.parents[1])) for path in (REPO / "tests" / "recorded" / "new").glob("02_runner_does_not_know_cards/*")]
    shapes = {re.sub(r"\d+", "0", name.replace(".ledger.txt", ".ledger").partition("/")[2]) for name in recorded}
    assert {re.sub(r"\d+", "0", name) for name in names if "/" not in name} <= shapes
    assert {name.partition("/")[0] for name in names if "/" in name} == {"models", "said"}
    assert "models" in shapes
    assert '"said"' in text("ddp_probe/traced/record/recorder.py")
