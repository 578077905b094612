"""Which tests run, and which of them side by side: pytest's options --all, --quick, --again and --seed, and the groups of pytest-xdist.

Tests that share a launch through a module-scoped fixture run in one worker, and so do those that share a costly session-scoped one; the other tests
of the rooms that launch jobs are divided one by one. A sweep over many cases carries ``pytest.mark.sample(N)``: N of them are drawn, all of them run
with --all; several tests over the same cases name them with ``of``, and draw the same. What carries
``pytest.mark.nightly`` runs with --all alone.

In a run of the whole suite tests take turns, drawn by the seed. Of those that launch jobs each stack has a quarter,
another one with the same seed; of those that only read logs each stack has the half that the other one does not. The
rooms of the promises are in each run, and the stacks divide what is drawn of their sweeps. .ci/run gives one seed to
both stacks. A run of chosen tests, and one with --all, has all of them.
"""

import os
import random
import sys
from pathlib import Path
from typing import Any, Dict, List, Optional

import pytest
from again import LOOKS, MOST, Again
from costs import Costs

_SEED = "PYTEST_SEED"
# In the environment, because the workers cannot tell whether paths were given.
_TURNS = "DDP_TESTS_TURNS"
_TESTS = Path(__file__).resolve().parent
# Session-scoped fixtures that take long to make: who uses one of them, runs where it is.
_COSTLY = ("training", "failures", "wheel", "sdist", "wheel_of_sdist")
# The rooms that read logs, and those that launch jobs.
_READING = (
    *("bundle", "checkpoints", "cli", "diagnose", "doctor", "gather", "html", "languages"),
    *("pages", "pipelines", "read", "report", "rules", "standing", "trace", "watch"),
)
LAUNCHING = tuple("advice remedies jobs packaging contract runs install activation accelerator record probes patching new".split())
# Some files of these launch jobs: they are marked as slow, and their tests run side by side too.
_DIVIDED = (*LAUNCHING, "hangs", "ledger", "restarts")
# The promises, what keeps them, and the programs of the recordings.
_EACH_RUN = ("contract", "patching", "record", "jobs")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that choose how much runs."""
    group = parser.getgroup("ddp_probe")
    group.addoption("--all", action="store_true", help="run every sweep whole, not a random share of it")
    group.addoption("--quick", action="store_true", help="leave out what launches jobs, and draw a third of each share: for the loop of editing")
    group.addoption("--again", action="store_true", help="up to %d tests that fail may pass %d times instead" % (MOST, LOOKS))
    group.addoption("--cpu", action="store_true", help="say at the end what the tests cost in CPU seconds, by folder, file and test")
    group.addoption("--seed", type=int, default=None, help="draw the shares of a run again that printed this seed")


def pytest_configure(config: pytest.Config) -> None:
    """Agree on one seed: the workers inherit it, as all of them have to collect the same tests."""
    config.addinivalue_line("markers", "nightly: runs with --all alone")
    config.addinivalue_line("markers", "slow: --quick leaves it out, as it does the rooms that launch jobs")
    config.addinivalue_line(
        "markers", "sample(n, of=name, few=m): a random n of the cases runs, m with --quick, the same ones in all tests with one `of`; all with --all"
    )
    if config.getoption("--cpu"):
        config.pluginmanager.register(Costs(), "costs")
    if config.getoption("--again") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Again(), "again")
    given = config.getoption("--seed")
    if given is not None:
        os.environ[_SEED] = str(given)
    os.environ.setdefault(_SEED, str(random.SystemRandom().randrange(10**6)))
    if not hasattr(config, "workerinput"):
        os.environ[_TURNS] = "" if _is_chosen(config) else "1"


def seed() -> int:
    """Return the seed of this run."""
    return int(os.environ[_SEED])


def stack() -> int:
    """Return which of the two stacks this is, 1 or 0."""
    return int(sys.version_info >= (3, 11))


def _is_chosen(config: pytest.Config) -> bool:
    """Tell whether somebody asked for certain tests, for all of them, or for the quick ones."""
    named = config.args_source is pytest.Config.ArgsSource.ARGS
    return named or any(config.getoption(each, None) for each in ("--all", "--quick", "keyword", "markexpr", "lf", "failedfirst"))


def pytest_report_header(config: pytest.Config) -> str:
    """Say how to draw the same shares again."""
    if config.getoption("--all"):
        return "sweeps: whole"
    drawn = "sweeps: a random share; again with --seed %d, whole with --all" % seed()
    turns = "turns: a quarter of what launches jobs, half of what reads logs; the other stack has another part"
    return "%s\n%s" % (drawn, turns) if os.environ[_TURNS] else drawn


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> Optional[bool]:
    """With --quick, pass over the rooms that launch jobs: importing their tests takes seconds in each process."""
    return True if config.getoption("--quick") and collection_path.parent == _TESTS and collection_path.name in LAUNCHING else None


@pytest.hookimpl(tryfirst=True)  # xdist registers its own hook, which reads the groups, after this one: without tryfirst it finds none.
def pytest_collection_modifyitems(config: pytest.Config, items: List[pytest.Item]) -> None:
    """Choose and group what was collected."""
    quick, turns = config.getoption("--quick"), bool(os.environ[_TURNS])
    kept = items[:]
    if not config.getoption("--all"):
        asked = [item for item in items if item.nodeid in config.args]  # By their whole names, as again.py does.
        kept = [item for item in kept if not item.get_closest_marker("nightly")]
        kept = [*asked, *_without(kept, [*asked, *_not_drawn(kept, quick)])]
    if quick:
        kept = [item for item in kept if not _launches(item)]
    elif turns:
        kept = [item for item in kept if _has_its_turn(item)]
    if len(kept) < len(items):
        config.hook.pytest_deselected(items=_without(items, kept))
        items[:] = kept
    if config.pluginmanager.hasplugin("xdist"):
        for item in items:
            group = _group(item)
            if group:
                item.add_marker(pytest.mark.xdist_group(group))


def _without(items: List[pytest.Item], others: List[pytest.Item]) -> List[pytest.Item]:
    there = {id(item) for item in others}
    return [item for item in items if id(item) not in there]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_node_collection_finished(node: Any, ids: List[str]) -> None:
    """Refuse to run side by side without the groups: each worker would start every shared launch again, and nobody would see why it takes so long."""
    if node.config.getoption("dist") == "loadgroup" and any("@" not in each for each in ids if _room(each) not in _DIVIDED):
        pytest.exit("This pytest-xdist does not group tests under pytest %s; setup.cfg names versions that fit." % pytest.__version__, 4)


def _group(item: Any) -> str:
    """Return what keeps a test together with others; empty for one that may run anywhere."""
    costly = [each.argname for each in _fixtures(item) if each.argname in _COSTLY]
    if costly:
        return "wheel" if set(costly) - {"training", "failures"} else costly[0]
    return item.nodeid.partition("::")[0] if _shares(item) or _room(item.nodeid) not in _DIVIDED else ""


def _fixtures(item: Any) -> List[Any]:
    return [each for defs in item._fixtureinfo.name2fixturedefs.values() for each in defs[-1:]]


def _shares(item: Any) -> bool:
    return any(each.scope in ("module", "class") for each in _fixtures(item))


def _launches(item: Any) -> bool:
    return _room(item.nodeid) in LAUNCHING or item.get_closest_marker("slow") is not None


def _has_its_turn(item: Any) -> bool:
    """Tell whether this run has a test; those that share a launch or a case are in the same run."""
    sample: Any = item.get_closest_marker("sample")
    name = item.nodeid
    if _shares(item):
        name = name.partition("::")[0]
    elif sample is not None and "of" in sample.kwargs:
        name = sample.kwargs["of"] + _id(item)
    parts = _parts(item, sample is not None)
    return parts == 1 or random.Random("%d turn %s" % (seed(), name)).randrange(parts) == stack()


def _parts(item: Any, is_sweep: bool) -> int:
    """Return into how many parts the tests like this one are divided, of which each stack has one."""
    room = _room(item.nodeid)
    if room in _EACH_RUN:
        return 2 if is_sweep else 1
    if item.get_closest_marker("skipif"):  # One stack alone can show it.
        return 1
    if _launches(item):
        return 4
    return 2 if room in _READING else 1


def _not_drawn(items: List[pytest.Item], quick: bool) -> List[pytest.Item]:
    sweeps: Dict[str, List[Any]] = {}
    for item in items:
        marker: Any = item.get_closest_marker("sample")
        if marker is not None:
            sweeps.setdefault(marker.kwargs.get("of", item.nodeid.partition("[")[0]), []).append(item)
    dropped: List[pytest.Item] = []
    for name, cases in sorted(sweeps.items()):
        marker = cases[0].get_closest_marker("sample")
        ids = sorted({_id(case) for case in cases})
        wanted = marker.args[0] if marker.args else len(ids)
        if quick:
            wanted = marker.kwargs.get("few", -(-wanted // 3))
        drawn = random.Random("%d %s" % (seed(), name)).sample(ids, min(len(ids), wanted))
        dropped += [case for case in cases if _id(case) not in drawn]
    return dropped


def _id(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[2]


def _room(nodeid: str) -> str:
    parts = nodeid.split("/")
    return parts[1] if len(parts) > 2 else ""


@pytest.fixture(scope="session")
def whole(request: pytest.FixtureRequest) -> bool:
    """Whether sweeps run whole."""
    return bool(request.config.getoption("--all"))
