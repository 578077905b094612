"""How each block of each page is checked: one claim for it, by its page, its language and its first line."""

import fnmatch
from typing import Callable, List, NamedTuple, Optional, Union

import printed_blocks as printed
from page_blocks import Block
from page_scene import Scene

SHELL = "shell"
"""Lines that a person types: bash reads them, and each command of the probe and each script in them exists with these options."""

Printed = Callable[[Scene], str]


class PrintedFor(NamedTuple):
    """A function of printed_blocks that reads in the block itself which commands to follow."""

    by: Callable[[Scene, str], str]


class ByTest(NamedTuple):
    """A test file that runs the blocks of a page; it names the page or its folder."""

    path: str


class Illustration(NamedTuple):
    """A block that nothing can print, and why."""

    because: str


How = Union[str, Printed, PrintedFor, ByTest, Illustration]


class Claim(NamedTuple):
    """Blocks that are checked in one way."""

    page: str  # A pattern.
    first: str  # How they begin.
    how: How
    language: Optional[str] = None  # A pattern; None for any.

    def holds(self, block: Block) -> bool:
        """Tell whether a block is one of these."""
        language = self.language is None or fnmatch.fnmatchcase(block.language, self.language)
        return fnmatch.fnmatchcase(block.page, self.page) and block.text.startswith(self.first) and language


_LAUNCHERS, _COLLECTORS = ByTest("tests/clients/test_launcher_pages.py"), "tests/pipelines/test_%s.py"
_SCHEDULERS = ByTest("tests/cli/test_schedulers_page.py")
_SITE_RULES = ByTest("tests/diagnose/test_site_rules.py")
_TREE = Illustration("The names in a folder of runs; the README's run and test_run_folder.py have real ones.")
_TROUBLE, _HANGS = "docs/troubleshooting.md", "docs/hangs.md"
_HOW, _CARDS = "docs/contributing/how-it-works.md", "docs/contributing/accelerators.md"
_OPEN = "undecided: no rule can name a cause, because\n  - "

CLAIMS: List[Claim] = [
    Claim("docs/api.md", "", ByTest("tests/test_api.py"), "python"),
    Claim("docs/installing.md", "", ByTest("tests/packaging/test_installing_page.py"), "sh *"),
    Claim("docs/installing.md", "RUN ", ByTest("tests/packaging/test_installing_page.py"), "dockerfile image"),
    Claim("docs/start.md", "$ python -m ddp_probe watch", printed.watch_table),
    Claim("docs/start.md", "$ python -m ddp_probe checkpoint", printed.checkpoint_cut_off),
    Claim("docs/start.md", "$ python -m ddp_probe report", printed.cards_of_ranks),
    Claim("docs/start.md", "$ python -m ddp_probe explain", printed.change_applied),
    Claim("docs/start.md", "$ python -m ddp_probe bundle", printed.bundle_written),
    Claim("docs/pytest.md", "pip install", SHELL),
    Claim("docs/pytest.md", "-----", ByTest("tests/test_pytest_plugin.py")),
    Claim("docs/attach.md", "pip install", SHELL),
    Claim("docs/attach.md", "$ python -m ddp_probe report", ByTest("tests/attach/test_attach_page.py")),
    Claim("docs/attach.md", "DDP_PROBE_DIR=/shared", SHELL),
    Claim("skills/ddp-probe/SKILL.md", "python -m ddp_probe ", ByTest("tests/pages/test_skill.py")),
    Claim("README*.md", "python3 -m venv", ByTest("tests/pages/test_first_commands.py")),
    Claim("README*.md", "pip wheel", SHELL),
    Claim("README*.md", "python -m ddp_probe watch", SHELL),
    Claim("README*.md", "DDP_PROBE=1 ", SHELL),
    Claim("README*.md", "./scripts/demo", SHELL),
    Claim("README*.md", "$ python -m ddp_probe report", printed.cards_unknown),
    Claim("CONTRIBUTING.md", "docker build", SHELL),
    Claim("CONTRIBUTING.md", "./scripts/", SHELL),
    Claim("CONTRIBUTING.md", ".venv/bin/", SHELL),
    Claim("CONTRIBUTING.md", "setup.cfg  ", Illustration("The place of each file; test_page_commands.py looks for each.")),
    Claim("CONTRIBUTING.md", "name: ", printed.example_of_a_rule),
    Claim(_HOW, "import os; ", printed.pth_line),
    Claim(_HOW, "$ cd ", PrintedFor(printed.lines_of_log)),
    Claim(_HOW, "$ sed ", PrintedFor(printed.lines_of_log)),
    Claim(_HOW, "$ tail ", PrintedFor(printed.lines_of_log)),
    Claim(_HOW, "ddp_probe: rank 1 ", printed.warning_line),
    Claim(_HOW, "evidence", printed.evidence),
    Claim(_HOW, "ddp_probe_runs/latest/", _TREE),
    Claim(_HANGS, "DDP602 ", ByTest("tests/diagnose/test_decided.py")),
    Claim(_HANGS, "DDP_PROBE_WATCH=", SHELL),
    Claim(_HANGS, "DDP629 ", printed.standstill_line),
    Claim(_HANGS, "$ python -m ddp_probe watch", printed.watch_table),
    Claim(_HANGS, "python -m ddp_probe stacks", SHELL),
    Claim(_HANGS, "$ python -m ddp_probe report", printed.backward_skipped),
    Claim(_HANGS, "python -m ddp_probe report --html", SHELL),
    Claim(_TROUBLE, "$ python -m ddp_probe report\n", printed.no_run),
    Claim(_TROUBLE, "$ python -m ddp_probe report --brief 20261122-145847-2863-e258", printed.no_file),
    Claim(_TROUBLE, _OPEN + "Rank 1 has no file", printed.no_file_next),
    Claim(_TROUBLE, _OPEN + "Rank 1 has no end line", printed.killed_without_launcher),
    Claim(_TROUBLE, "$ python -m ddp_probe install\n", printed.read_only),
    Claim(_TROUBLE, "$ python -m ddp_probe run -- /usr/local/bin/python -I", printed.isolated),
    Claim(_TROUBLE, "$ python -m ddp_probe run -- /usr/local/bin/python -S", printed.without_site),
    Claim(_TROUBLE, "$ python -m ddp_probe run -- /usr/local/bin/python train.py", printed.lacks_packages),
    Claim(_TROUBLE, "$ python -m ddp_probe install --via", printed.foreign_sitecustomize),
    Claim(_TROUBLE, "ddp_probe: rank 0 cannot write", printed.unwritable),
    Claim(_TROUBLE, "DOC502 ", printed.unwritable_before),
    Claim(_TROUBLE, "DOC503 ", printed.another_python),
    Claim(_TROUBLE, "  faults ", printed.faults),
    Claim(_TROUBLE, "mistake ", printed.mistyped),
    Claim(_CARDS, "python -m ddp_probe doctor", SHELL),
    Claim(_CARDS, ".venv/bin/", SHELL),
    Claim("docs/device-state.md", "python -m ddp_probe logs", SHELL),
    Claim("docs/device-state.md", "python -m ddp_probe report", SHELL),
    Claim("docs/contributing/adding.md", "from ddp_probe.structlog import capture_logs", ByTest("tests/record/test_capture_logs.py")),
    Claim(_CARDS, "# acme_probe.py", ByTest("tests/pages/test_page_commands.py")),
    Claim(_CARDS, "[options.entry_points]", ByTest("tests/pages/test_page_commands.py")),
    Claim("docs/launchers/*.md", "", _LAUNCHERS, "sh ?*"),
    Claim("docs/launchers/*.md", "", _LAUNCHERS, "yaml ?*"),
    Claim("docs/launchers/*.md", "", SHELL, "sh"),
    Claim("docs/launchers/*.md", "", _LAUNCHERS, "text"),
    Claim("docs/launchers/ray-train.md", "ray.init(", Illustration("One line for a program of the reader's; test_page_commands.py compiles it.")),
    *(Claim("docs/%s.md" % name, "", ByTest("tests/clients/test_framework_pages.py")) for name in ("accelerate", "lightning", "mmengine")),
    Claim("docs/fleets.md", "pip install", SHELL),
    Claim("docs/fleets.md", "", ByTest("tests/clients/test_fleets.py"), "*[nh]"),
    Claim("docs/pipelines/README.md", "", ByTest(_COLLECTORS % "plain_tools"), "sh"),
    Claim("docs/pipelines/README.md", "import json", ByTest("tests/clients/test_fleets.py")),
    Claim("docs/pipelines/README.md", "sed -i ", SHELL),
    Claim("docs/pipelines/fluent-bit.md", "fluent-bit ", SHELL),
    Claim("docs/pipelines/fluent-bit.md", "", ByTest("tests/pages/test_page_commands.py"), "yaml"),
    Claim("docs/pipelines/loki.md", "promtail ", SHELL),
    Claim("docs/pipelines/loki.md", "", ByTest(_COLLECTORS % "loki"), "logql"),
    Claim("docs/pipelines/loki.md", "", ByTest(_COLLECTORS % "loki"), "yaml"),
    Claim("docs/pipelines/vector.md", "vector ", SHELL),
    Claim("docs/pipelines/vector.md", "", ByTest(_COLLECTORS % "vector"), "coffee"),
    Claim("docs/site-rules.md", "$ python -m ddp_probe rules", _SITE_RULES),
    Claim("docs/site-rules.md", "", _SITE_RULES, "toml"),
    Claim("docs/schedulers.md", "", _SCHEDULERS, "bash"),
    Claim("docs/schedulers.md", "", _SCHEDULERS, "yaml"),
]
"""Every claim; a block has exactly one, and a claim has at least one block."""


def claims(block: Block) -> List[Claim]:
    """Return the claims of a block."""
    return [claim for claim in CLAIMS if claim.holds(block)]
