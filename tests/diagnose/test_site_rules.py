"""A site's own rules: docs/site-rules.md as it is printed, what is refused, and that they yield to ours."""

import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Any, Callable, Dict, List

import pytest

from ddp_probe.judging import pattern_cost, printed, site_rules
from ddp_probe.judging.causes import SITE_CAUSE
from ddp_probe.judging.judge import Diagnosis, judge
from ddp_probe.judging.printed import Searchable
from ddp_probe.judging.rule import SITE, HostCard, Printed, Rule
from ddp_probe.judging.site_rule_file import RefusedFile, SiteRule, read
from ddp_probe.reading.load_run import from_text

REPO = Path(__file__).resolve().parent.parent.parent
STALE = "StaleMountError: handle 0x7f is stale: '/scratch/data/7.tar' on node7"

LICENSE = """\
title = "The licence server has no seat left."
verdict = "The licence server {server} has no seat left for {product}."
remedy = "Wait for a seat: licences --who."
restart = "after"
match = '''LicenceError: no seat for (?P<product>\\w+) at (?P<server>[\\w.]+)'''
must_match = ["acme.LicenceError: no seat for mesher at lic1.acme"]
must_not_match = ["acme.LicenceError: the key of mesher has expired"]
"""
QUOTA = """\
title = "The group has used up its quota of scratch."
remedy = "Delete what is old: scratch-clean."
restart = "after"
match = ["(?i:quota) of group \\\\w+ exceeded on /scratch", "acme-fs: error: over quota"]
unless = "soft limit"
must_match = ["slurmstepd: error: Quota of group ml exceeded on /scratch", "acme-fs: error: over quota"]
must_not_match = '''acme-fs: error: over quota (soft limit)'''
"""


def _page_rule() -> str:
    page = (REPO / "docs" / "site-rules.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 1
    return str(blocks[0])


def _written(folder: Path, **rules: str) -> Path:
    """Write some rules, each by its name with underscores."""
    folder.mkdir(exist_ok=True)
    for name, text in rules.items():
        (folder / (name.replace("_", "-") + ".toml")).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three rules of a site, in the folder that DDP_PROBE_RULES names."""
    folder = _written(tmp_path / "rules", scratch_is_stale=_page_rule(), no_licence=LICENSE, over_quota=QUOTA)
    monkeypatch.setenv("DDP_PROBE_RULES", str(folder))
    return folder


def _diagnosis(log: str) -> Diagnosis:
    return judge(from_text(log))


@pytest.mark.parametrize(
    ("log", "slug", "verdict", "restart"),
    [
        (STALE, "scratch-is-stale", "/scratch/data/7.tar is on a mount that is stale on node7.", "elsewhere"),
        (
            "[rank1]: acme.LicenceError: no seat for mesher at lic1.acme",
            "no-licence",
            "The licence server lic1.acme has no seat left for mesher.",
            "after",
        ),
        (
            "slurmstepd: error: Quota of group ml exceeded on /scratch",
            "over-quota",
            "The group has used up its quota of scratch.",
            "after",
        ),
    ],
)
def test_a_rule_of_the_site_answers(site: Path, log: str, slug: str, verdict: str, restart: str) -> None:
    """Three rules, each written as the page says, name the cause of a log that none of ours answers."""
    (finding,) = _diagnosis(log).findings
    assert (finding.id, finding.slug, finding.cause) == (SITE, slug, SITE_CAUSE)
    assert (finding.verdict, finding.restart) == (verdict, restart)
    assert finding.ranks == ([1] if "rank1" in log else [])


def test_without_the_folder_nothing_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the site's rules answer is undecided without them."""
    monkeypatch.delenv("DDP_PROBE_RULES", raising=False)
    assert _diagnosis(STALE).verdict == "undecided"


def test_the_text_names_the_host(site: Path) -> None:
    """The group `host` is the host to leave out."""
    assert list(_diagnosis(STALE).findings[0].without) == [HostCard("node7", "")]


def test_both_forms_give_the_same_finding(site: Path) -> None:
    """The same rule as a Python file and as TOML meet one engine, and give the same finding."""
    of_site = site_rules.named("scratch-is-stale")
    assert of_site is not None
    as_python = Rule(
        id=SITE,
        slug="scratch-is-stale",
        cause=SITE_CAUSE,
        title="A mount of the scratch file system is stale.",
        symptom="",
        evidence="",
        remedy="Ask storage to mount it again.",
        restart="elsewhere",
        printed=(
            Printed(
                r"StaleMountError: handle 0x[0-9a-f]+ is stale: "
                r"'(?P<path>/scratch/[^'\n]*)' on (?P<host>[\w-]+)",
                says="{path} is on a mount that is stale on {host}.",
            ),
        ),
    )
    (first,), (second,) = [_answers(rule, STALE) for rule in (as_python, of_site.RULE)]
    assert (first.verdict, first.remedy, first.restart) == (second.verdict, second.remedy, second.restart)
    assert (first.without, first.evidence) == (second.without, second.evidence)


def _answers(rule: Rule, log: str) -> List[Any]:
    return list(printed.by_text(rule, from_text(log), plain=True))


OURS = "RuntimeError: CUDA error: uncorrectable ECC error encountered"


def test_a_rule_of_the_site_yields_to_ours(site: Path) -> None:
    """If a rule of ours names a cause too, it is the finding, and its evidence names the site's."""
    alone = _diagnosis(OURS).findings[0]
    pattern = "LicenceError: no seat for (?P<product>\\w+) at (?P<server>[\\w.]+)"
    text = LICENSE.replace(pattern, "uncorrectable ECC error encountered")
    text = re.sub(r"verdict = .*\n|must_match = .*\n", "", text) + 'must_match = """%s"""\n' % OURS
    _written(site, broken_card_here=text)
    (finding,) = _diagnosis(OURS).findings
    assert (finding.slug, finding.verdict) == (alone.slug, alone.verdict)
    says = "The site's rule broken-card-here matches here, too; it yields to %s."
    assert finding.evidence[-1].text == says % alone.id


@pytest.mark.parametrize(
    ("change", "why", "line"),
    [
        ({"must_not_match": None}, "It has no must_not_match.", 0),
        ({"must_match": None}, "It has no must_match.", 0),
        ({"must_match": '"ValueError: another"'}, "The rule does not match this line", 6),
        ({"must_not_match": '"OddError: beyond 7"'}, "The rule matches this line", 7),
        ({"match": r"'OddError: (?:\w+)+ \d+'"}, "may take too long: a repeated group", 5),
        ({"match": r"'OddError: \w*\w*\w*\w*9'"}, "may take too long: ", 5),
        ({"match": r"'(?P<a>OddError).*(?P=a)'"}, "may take too long: ", 5),
        ({"match": "'.*'"}, "it has no three letters in a row", 5),
        ({"match": "'OddError: ('"}, "It is not a regular expression of Python: ", 5),
        ({"match": "'%s'" % ("OddError" * 100)}, "A text of match has more than 500 characters.", 5),
        ({"verdict": '"{what.__class__.__mro__}"'}, "No group of the pattern has the name what._", 2),
        ({"verdict": '"{what!r:>99999999}"'}, "No group of the pattern has the name what.", 2),
        ({"title": '"Odd {what}."'}, "title has the place {what}, which only verdict can have.", 1),
        ({"remedy": '"Do {what}."'}, "remedy has the place {what}, which only verdict can have.", 3),
        ({"title": r'"\u001b]0;gotcha\u0007"'}, "title has characters that control a terminal.", 1),
        ({"remedy": r'"safe \u202e"'}, "remedy has characters that control a terminal.", 3),
        ({"restart": '"always"'}, "'always' is not a valid word for a restart: no, yes, ", 4),
        ({"import": '"os"'}, "import is not a key of a rule: ", 8),
        ({"must_match": "[" * 7000}, "It is not TOML: ", None),
        ({"remedy": '"%s"' % ("x" * 20_000)}, "It has more than 16384 bytes.", 0),
    ],
)
def test_a_hostile_file_is_refused(tmp_path: Path, change: Dict[str, Any], why: str, line: Any) -> None:
    """A file that does not prove itself, or could cost time or a terminal, is refused with its line."""
    fields = {
        "title": '"Odd."',
        "verdict": '"Odd."',
        "remedy": '"Do it."',
        "restart": '"no"',
        "match": r"'OddError: (?P<what>\w+) \d+'",
        "must_match": '"OddError: beyond 7"',
        "must_not_match": '"OddError: within"',
        **change,
    }
    text = "".join("%s = %s\n" % (key, value) for key, value in fields.items() if value is not None)
    began = time.process_time()
    answer = read(str(_written(tmp_path, odd=text) / "odd.toml"))
    assert isinstance(answer, RefusedFile)
    assert why in answer.why
    assert line is None or answer.line == line
    assert time.process_time() - began < 5


def test_what_is_no_file_of_a_rule_is_refused(tmp_path: Path) -> None:
    """Other bytes, a folder, and a name in capitals or of ours are refused, and a pipe does not wait."""
    (tmp_path / "bytes.toml").write_bytes(b'title = "a"\nremedy = "\xff"\n')
    (tmp_path / "folder.toml").mkdir()
    os.mkfifo(str(tmp_path / "pipe.toml"))
    _written(tmp_path, UPPER=LICENSE, model_never_moved=LICENSE, no_licence=LICENSE)
    answer = site_rules.of([str(tmp_path), str(tmp_path / "gone")])
    assert [rule.RULE.slug for rule in answer.rules] == ["no-licence"]
    reasons = {Path(refused.file).name: (refused.line, str(refused.why)) for refused in answer.refused}
    names = {"bytes", "folder", "pipe", "UPPER", "model-never-moved"}
    assert set(reasons) == {"gone", *("%s.toml" % name for name in names)}
    assert reasons["bytes.toml"] == (2, "It is not UTF-8.")
    assert reasons["model-never-moved.toml"] == (0, "A rule of ddp_probe has the name model-never-moved.")


WORST = ("OddError: " + "a" * 300, "slurmaaaa: error", "a job of " + "a" * 99, "slurm" * 9, "a job on 1")


@pytest.mark.parametrize(
    "pattern",
    [
        r"OddError: (?P<what>\w+) \d+",
        r"slurm[a-z]+: .{0,40}(?i:error)",
        r"a job (?:of \w+ )?on [^\n]*\d+ died",
    ],
)
def test_what_is_accepted_takes_few_steps(pattern: str) -> None:
    """A pattern that is accepted searches 200 KB of the texts that are worst for it in two seconds."""
    pattern_cost.refuse_costly(pattern)
    for text in WORST:
        began = time.process_time()
        Searchable(pattern).search(text * (200_000 // len(text)))
        assert time.process_time() - began < 2, text


def test_a_page_names_what_is_refused(site: Path) -> None:
    """A report names each refused file once, with the reason, however often its run is judged."""
    _written(site, no_proof="\n".join(line for line in QUOTA.splitlines() if not line.startswith("must_not")))
    run = from_text(STALE)
    for _ in range(2):
        judge(run)
    note = "Not a rule of the site: %s: It has no must_not_match."
    assert run.inventory.notes == [note % (site / "no-proof.toml")]


def test_an_edited_rule_is_read_again(site: Path) -> None:
    """A program that runs for long sees a rule that was changed."""
    assert _diagnosis(STALE).findings[0].remedy == "Ask storage to mount it again."
    _written(site, scratch_is_stale=_page_rule().replace("Ask storage to mount it again.", "Ask storage."))
    assert _diagnosis(STALE).findings[0].remedy == "Ask storage."


def test_a_package_brings_rules_and_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry point names the folder of a package, whose code does not run."""
    package = _written(tmp_path / "acme_rules", scratch_is_stale=_page_rule())
    (package / "__init__.py").write_text("raise SystemExit('it ran')\n")
    info = tmp_path / "acme-1.0.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_text("[ddp_probe.rules]\nacme = acme_rules\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv("DDP_PROBE_RULES", raising=False)
    assert [finding.slug for finding in _diagnosis(STALE).findings] == ["scratch-is-stale"]
    assert "acme_rules" not in sys.modules


Command = Callable[..., Any]


@pytest.fixture
def command(run_python: Command, clean_env: Callable[..., Dict[str, str]], tmp_path: Path) -> Command:
    """Run a command of the probe in the test's folder, with some variables."""

    def run(*words: str, **variables: str) -> Any:
        environment = {**clean_env(), **variables}
        return run_python(["-m", "ddp_probe", *words], cwd=tmp_path, env=environment)

    return run


def test_the_page_as_it_is_printed(tmp_path: Path, command: Command) -> None:
    """A draft has the words that failed, and is refused until it is filled in; then it answers the log."""
    (tmp_path / "err.log").write_text("Traceback (most recent call last):\nacme.%s\n" % STALE)
    report = command("report", "err.log")
    assert "python -m ddp_probe rules --draft err.log" in " ".join(report.stdout.split())
    draft = command("rules", "--draft", "err.log")
    assert draft.returncode == 0
    folder = _written(tmp_path / "rules", scratch_is_stale=draft.stdout)
    refused = command("rules", "rules/scratch-is-stale.toml")
    assert refused.stdout == "refused  rules/scratch-is-stale.toml:4: title needs a text.\n"
    assert refused.returncode == 1
    filled = draft.stdout
    values = {"title": "A.", "remedy": "B.", "restart": "no", "must_not_match": "ValueError: C"}
    for key, value in values.items():
        filled = re.sub(r'(?m)^%s = ""' % key, '%s = "%s"' % (key, value), filled)
    _written(folder, scratch_is_stale=filled)
    checked = command("rules", "rules/scratch-is-stale.toml")
    assert (checked.returncode, checked.stdout) == (0, "ok  scratch-is-stale  rules/scratch-is-stale.toml\n")
    _written(folder, scratch_is_stale=_page_rule())
    report = command("report", "--json", "err.log", DDP_PROBE_RULES="rules")
    answer = json.loads(report.stdout)
    assert [finding["slug"] for finding in answer["findings"]] == ["scratch-is-stale"]
    assert (answer["restart"]["helps"], answer["restart"]["hosts"]) == ("elsewhere", ["node7"])


def test_a_page_in_chinese(tmp_path: Path, command: Command) -> None:
    """A Chinese report has the rule's Chinese texts, and `explain` prints its page with both lines."""
    (tmp_path / "err.log").write_text(STALE + "\n")
    _written(tmp_path / "rules", scratch_is_stale=_page_rule())
    chinese = {"DDP_PROBE_RULES": "rules", "DDP_PROBE_LANG": "zh", "PYTHONIOENCODING": "utf-8"}
    page = command("report", "err.log", **chinese).stdout
    assert "所在的挂载在 node7 上已失效。" in page
    assert "请存储管理员重新挂载。" in page
    explained = command("explain", "scratch-is-stale", DDP_PROBE_RULES="rules").stdout
    assert STALE in " ".join(explained.split())


LOADED = """
import sys
import ddp_probe
ddp_probe.activate()
import torch
readers = [name for name in sys.modules if "site_rule" in name or name in ("tomllib", "tomli")]
print("ddp_probe.traced.session" in sys.modules, readers)
"""


def test_the_traced_process_loads_none(tmp_path: Path, run_python: Command, clean_env: Command) -> None:
    """A process with the probe on and DDP_PROBE_RULES set loads nothing that reads rules, nor TOML."""
    _written(tmp_path / "rules", scratch_is_stale=_page_rule())
    done = run_python(LOADED, cwd=tmp_path, env={**clean_env(), "DDP_PROBE": "1", "DDP_PROBE_RULES": "rules"})
    assert done.stdout.strip() == "True []"


def test_what_the_loader_returns(site: Path) -> None:
    """The three rules are loaded in the order of their files, each with its lines."""
    rules: List[SiteRule] = list(site_rules.loaded().rules)
    assert [rule.RULE.slug for rule in rules] == ["no-licence", "over-quota", "scratch-is-stale"]
    assert all(rule.must_match and rule.must_not_match for rule in rules)
