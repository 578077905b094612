"""Each rule is right about its own examples, and silent about everybody else's that are not its own."""

import json
import re
from pathlib import Path
from typing import Any, Iterator, List, Tuple

import pytest

from ddp_probe.judging import examples
from ddp_probe.judging.causes import GROUPS, SITE_CAUSE
from ddp_probe.judging.examples import Example
from ddp_probe.judging.judge import judge
from ddp_probe.judging.rule import Finding
from ddp_probe.judging.rules import RETIRED, modules, rule_of
from ddp_probe.reading.load_run import from_lines
from ddp_probe.shared import settings

RECORDED = Path(__file__).resolve().parent.parent / "recorded"


def _examples() -> Iterator[Any]:
    for module in modules():
        for example in examples.of(rule_of(module).slug):
            yield pytest.param(module, example, id="%s %s" % (rule_of(module).slug, example.name))


@pytest.mark.parametrize(("module", "example"), list(_examples()))
def test_answers_its_example(module: Any, example: Example) -> None:
    """A rule answers its example as the example says, and names exactly the ranks."""
    diagnosis = judge(from_lines(example.log), [module])
    found = [finding for finding in diagnosis.findings if finding.slug == rule_of(module).slug]
    undecided = [answer for answer in diagnosis.undecided if answer.slug == rule_of(module).slug]
    assert ("found" if found else "undecided" if undecided else "clear") == example.answer
    assert [tuple(finding.ranks) for finding in found] == ([example.ranks] if found else [])


@pytest.mark.parametrize(("module", "example"), list(_examples()))
def test_among_all_rules(module: Any, example: Example) -> None:
    """With all rules asked, what an example shows is its own rule's finding and nobody else's; an example of silence is nobody's error."""
    slugs = [finding.slug for finding in judge(from_lines(example.log)).findings]
    if example.answer == "found":
        assert slugs == [rule_of(module).slug]
    else:
        assert rule_of(module).slug not in slugs


@pytest.mark.parametrize("module", modules(), ids=lambda module: rule_of(module).slug)
def test_has_both_kinds(module: Any) -> None:
    """A rule has an example in which it finds, and one in which it stays silent; where it reads events, one of the first kind is recorded."""
    answers = {example.answer for example in examples.of(rule_of(module).slug)}
    assert "found" in answers
    assert "clear" in answers


def test_every_folder_of_examples_has_a_rule() -> None:
    """Each folder in tests/rules has the name of a rule, and holds logs alone."""
    folder = RECORDED.parent / "rules"
    assert sorted(path.name for path in folder.iterdir()) == sorted(rule_of(module).slug for module in modules())
    assert [path.name for path in folder.rglob("*") if path.is_file() and path.suffix != ".log"] == []


@pytest.mark.parametrize(
    ("header", "why"),
    [
        ("answer: found", "the header needs a name, and an answer, which is one of found, clear, undecided"),
        ("name: A save.", "the header needs a name, and an answer, which is one of found, clear, undecided"),
        ("name: A save.\nanswer: maybe", "the header needs a name, and an answer, which is one of found, clear, undecided"),
        ("name: A save.\nanswer: found\nranks: one", "invalid literal for int() with base 10: 'one'"),
        ("name: A save.\nanswer: found\nrank: 1", "the header has rank; it may have name, answer, ranks, families, version and job"),
        ('{"event":"checkpoint.save"}', 'the header ends with an empty line, and \'{"event":"checkpoint.save"}\' is not a field of it'),
    ],
)
def test_a_header_that_is_wrong_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, header: str, why: str) -> None:
    """An example without what its header must say, or with a field that no header has, names its file and the field."""
    path = tmp_path / "some-rule" / "01-a-save.log"
    path.parent.mkdir()
    path.write_text("%s\n\nValueError: no\n" % header, encoding="utf-8")
    monkeypatch.setattr(examples, "_FOLDERS", (str(tmp_path),))
    with pytest.raises(ValueError, match=re.escape("some-rule/01-a-save.log: %s" % why)):
        examples.of("some-rule")


def test_a_report_loads_no_example(run_python: Any) -> None:
    """What judges a run and prints the report does not import the module that reads examples."""
    code = "import sys; from ddp_probe.cli import main; main(['report', %r]); sys.exit('ddp_probe.judging.examples' in sys.modules)"
    done = run_python(["-c", code % str(RECORDED / "new" / "03_submodule_left_behind")])
    assert "submodule-left-behind" in done.stdout
    assert done.returncode == 0


def test_ids_and_slugs_are_unique_for_ever() -> None:
    """No id and no slug is used twice, a retired one included; an id is DDP and three digits."""
    rules = [rule_of(module) for module in modules()]
    ids = [rule.id for rule in rules] + list(RETIRED)
    slugs = [rule.slug for rule in rules] + list(RETIRED.values())
    assert len(set(ids)) == len(ids)
    assert len(set(slugs)) == len(slugs)
    assert all(re.fullmatch(r"DDP\d{3}", name) for name in ids)
    assert all(module.__name__.rpartition(".")[2] == rule_of(module).slug.replace("-", "_") for module in modules())


def test_yields_to_rules_that_exist() -> None:
    """The rules that supersede a rule are there, and it does not supersede them."""
    rules = {rule_of(module).slug: rule_of(module) for module in modules()}
    for rule in rules.values():
        assert set(rule.yields_to) <= set(rules), rule.slug
        assert not any(rule.slug in rules[slug].yields_to for slug in rule.yields_to), rule.slug


def test_every_cause_has_a_rule() -> None:
    """Each cause but that of a site's own rules is named by at least one rule, and no rule names another."""
    causes = {cause for group in GROUPS.values() for cause in group} - {SITE_CAUSE}
    named = {rule_of(module).cause for module in modules()}
    assert sorted(named - causes) == [], "Add these to GROUPS in ddp_probe/judging/causes.py, or name a cause that is there."
    assert sorted(causes - named) == [], "No rule names these. Take them out of ddp_probe/judging/causes.py."


def test_names_remedies_that_exist() -> None:
    """The remedy that a rule names is one that DDP_PROBE_FIX knows."""
    named = {rule_of(module).fix for module in modules()} - {""}
    assert named <= set(settings.REMEDIES)
    assert len(named) > 5


def test_finds_nothing_in_nothing() -> None:
    """A log of one rank that started and ended well is clear to every rule."""
    run = from_lines(
        '{"event":"process.start","rank":0,"world_size":1,"role":"rank","launcher":"torchrun"}\n{"event":"process.end","rank":0,"exit_code":0}'
    )
    assert judge(run).verdict == "clear"


def _recorded_events(job: str) -> List[Tuple[Any, ...]]:
    files = sorted(RECORDED.glob("*/%s/**/*.jsonl" % job))
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(("module", "example"), [each for each in _examples() if each.values[1].job and each.values[1].log.lstrip().startswith("{")])
def test_example_is_cut_from_its_recording(module: Any, example: Example) -> None:
    """Each line of an example that names a job is part of a line that the job left, but for the counters of time and span."""
    events = _recorded_events(example.job)
    assert events, "tests/recorded has no %s" % example.job
    for text in example.log.strip().splitlines():
        line = json.loads(text)
        assert any(_is_part(line, event) for event in events), text


_COUNTERS = {"span", "mono_ns", "seq", "ts", "host"}


def _is_part(small: Any, big: Any) -> bool:
    if isinstance(small, dict) and isinstance(big, dict):
        return all(key in big and (key in _COUNTERS or _is_part(value, big[key])) for key, value in small.items())
    if isinstance(small, list) and isinstance(big, list):
        return len(small) <= len(big) and all(any(_is_part(item, other) for other in big) for item in small)
    if isinstance(small, str) and isinstance(big, str):
        return small in big
    return bool(small == big)


def test_finding_has_what_a_person_needs() -> None:
    """Every finding of every example has a verdict, evidence with a line of the log, and a remedy, each a sentence."""
    for parameter in _examples():
        module, example = parameter.values
        findings: List[Finding] = judge(from_lines(example.log), [module]).findings
        for finding in findings:
            assert finding.verdict.endswith("."), finding
            assert finding.remedy.rstrip().endswith((".", ")", "`")), finding
            assert finding.evidence, finding
            assert all(item.line > 0 for item in finding.evidence), finding


FAMILIES = (
    "CNCL ECCL MCCL RCCL Ray SLURM Kubernetes XLA habana inplace ipex oneCCL torch_gcu torch_mlu torch_musa torch_npu address-of-a-container "
    "all-processes-on-card-0 broken-card InfiniBand-that-is-not-there interface-lo parameters-without-a-gradient remote-process-exited "
    "renamed-staging-folder small-shared-memory start-without-a-launcher unhandled-system-error"
).split()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_has_two_versions_and_a_look_alike(family: str) -> None:
    """Each kind of text that people bring is answered in the words of two versions, and one text that looks like it is not."""
    known = [each.values[1] for each in _examples() if any(name.replace(" ", "-").startswith(family) for name in each.values[1].families)]
    assert len({example.version for example in known if example.answer != "clear"} - {""}) >= 2
    assert [example.name for example in known if example.answer == "clear"]
