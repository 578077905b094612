"""The form for test reports: the document is one that GitLab and Jenkins take, it agrees with the verdict, and nothing of a log breaks it."""

import re
import unicodedata
from dataclasses import replace
from typing import Callable, Dict, List, Tuple
from xml.etree import ElementTree

import junitparser
import pytest
from msgspec import structs

from ddp_probe.judging.judge import Diagnosis
from ddp_probe.judging.rule import Undecided
from ddp_probe.showing import junit

_JOBS = ["03_submodule_left_behind", "00_healthy_cards", "12_killed_by_sigkill", "10_rank_never_started"]
_OUTCOME = (("type", "message"), ())
# What junit-10.xsd of Jenkins' xUnit plugin lets an element have: required attributes, other attributes, children.
_SCHEMA: Dict[str, Tuple[Tuple[str, ...], Tuple[str, ...], Tuple[str, ...]]] = {
    "testsuite": (
        ("name", "tests", "failures", "errors"),
        ("skipped", "timestamp", "hostname", "time", "id", "package", "file"),
        ("properties", "testcase"),
    ),
    "properties": ((), (), ("property",)),
    "property": (("name", "value"), (), ()),
    "testcase": (("name",), ("classname", "time", "group"), ("failure", "error", "skipped")),
    "failure": ((), *_OUTCOME),
    "error": ((), *_OUTCOME),
    "skipped": ((), *_OUTCOME),
}
HOSTILE = "a\n::error::x\r ]]> </failure><testcase name='y'/> <!-- & &amp; \x00\x1b[2J\u202e\ufffe\ud800 模型 \U0001f3d6"


def _checked(text: str) -> ElementTree.Element:
    """Return the document, which is ASCII and has only what the schema allows."""
    assert text.isascii()
    root = ElementTree.fromstring(text)
    assert root.tag == "testsuite"
    for element in root.iter():
        required, other, children = _SCHEMA[element.tag]
        assert set(required) <= set(element.attrib) <= {*required, *other}, element.attrib
        assert {child.tag for child in element} <= set(children)
    return root


def _cases(text: str) -> Dict[Tuple[str, str], "junitparser.TestCase"]:
    """Return the tests by class and name, as an independent reader has them; GitLab keeps one for each."""
    suite = junitparser.TestSuite.fromstring(text.encode())
    found = list(suite)
    by_name = {(str(case.classname), str(case.name)): case for case in found}
    assert len(by_name) == len(found) == suite.tests
    kinds = [type(result) for case in found for result in case.result]
    counts = [kinds.count(kind) for kind in (junitparser.Failure, junitparser.Error, junitparser.Skipped)]
    assert counts == [suite.failures, suite.errors, suite.skipped]
    return by_name


@pytest.mark.parametrize("job", _JOBS)
def test_every_document_is_one_that_jenkins_takes(job: str, recorded: Callable[[str], Diagnosis]) -> None:
    """The document fits the schema, its counts are right, and it fails exactly if the exit code is not 0."""
    diagnosis = recorded(job)
    text = junit.text(diagnosis)
    _checked(text)
    cases = _cases(text)
    bad = [case for case in cases.values() if any(isinstance(result, (junitparser.Failure, junitparser.Error)) for result in case.result)]
    assert bool(bad) == bool(diagnosis.exit_code())
    assert len(cases) == 1 + len(diagnosis.findings) + len(diagnosis.undecided)


def test_a_finding_is_a_failed_test(made: Diagnosis) -> None:
    """Its class is the rule, its name says which ranks, and its text has verdict, change and evidence with the lines of the job and of the log."""
    cases = _cases(junit.text(made))
    assert list(cases) == [("ddp_probe", "verdict"), ("ddp_probe.submodule-left-behind", "DDP104 on ranks 0-1")]
    (failure,) = cases["ddp_probe.submodule-left-behind", "DDP104 on ranks 0-1"].result
    assert (failure.type, failure.message) == ("mixed_cpu_cuda_params", made.findings[0].verdict)
    texts = [line.strip() for line in failure.text.split("\n")]
    assert texts[0] == "DDP104 submodule-left-behind  ranks 0-1"
    for wanted in ("model.to(device)", "at /train/t.py:24 in main", "Or, for one run without editing: DDP_PROBE_FIX=move-model"):
        assert wanted in texts
    assert any(re.match(r"rank00000\.node1\.\d+\.jsonl:8 and 1 more like it", text) for text in texts)
    (verdict,) = cases["ddp_probe", "verdict"].result
    assert isinstance(verdict, junitparser.Failure)


def test_a_warning_fails_nothing(made: Diagnosis) -> None:
    """A run with nothing worse than a warning is 0, strictly 1; its warning is a skipped test with the same text, and its verdict passes."""
    warned = made._replace(findings=[replace(made.findings[0], severity="warning")], undecided=[])
    assert (warned.exit_code(), warned.exit_code(strict=True)) == (0, 1)
    cases = _cases(junit.text(warned))
    assert cases["ddp_probe", "verdict"].result == []
    (skipped,) = cases["ddp_probe.submodule-left-behind", "DDP104 on ranks 0-1"].result
    assert isinstance(skipped, junitparser.Skipped)
    assert "model.to(device)" in str(skipped.text)


def test_the_properties_describe_the_run(made: Diagnosis) -> None:
    """Run, launcher, ranks and hosts are properties of the suite."""
    suite = junitparser.TestSuite.fromstring(junit.text(made).encode())
    properties = {each.name: each.value for each in suite.properties()}
    assert properties["run"] == made.run.name
    assert (properties["launcher"], properties["ranks"], properties["hosts"]) == ("torchrun", "2", "node1")


def test_an_open_question_is_an_error_or_beside_a_finding_skipped(made: Diagnosis, told: Callable[[str], Diagnosis]) -> None:
    """An undecided run has errors with the next step; if a cause was found, what is still open does not fail."""
    diagnosis = told('{"event":"process.start","rank":0,"world_size":3}\n{"event":"process.end","rank":0}')
    cases = _cases(junit.text(diagnosis))
    assert {type(result) for case in cases.values() for result in case.result} == {junitparser.Error}
    (error,) = cases["ddp_probe.missing-ranks", "undecided"].result
    assert error.text.split("\n") == [diagnosis.undecided[0].because, "next: " + diagnosis.undecided[0].next]
    beside = _cases(junit.text(made._replace(undecided=diagnosis.undecided)))
    assert isinstance(beside["ddp_probe.missing-ranks", "undecided"].result[0], junitparser.Skipped)


def test_equal_names_are_numbered(made: Diagnosis) -> None:
    """Three questions of one rule are three tests."""
    asked = [Undecided("waiting", "Question %d." % number) for number in range(3)]
    names = [name for classname, name in _cases(junit.text(made._replace(undecided=asked))) if classname == "ddp_probe.waiting"]
    assert names == ["undecided", "undecided (2)", "undecided (3)"]


def test_nothing_of_a_log_breaks_the_document(made: Diagnosis) -> None:
    """Characters that XML forbids, ends of sections and tags of a log are text, visible; letters stay as they are."""
    made.findings[0] = finding = replace(made.findings[0], verdict=HOSTILE, remedy=HOSTILE)
    finding.evidence[0] = structs.replace(finding.evidence[0], text=HOSTILE)
    made.run.name = HOSTILE
    text = junit.text(made._replace(undecided=[Undecided("open", HOSTILE, next=HOSTILE)]))
    root = _checked(text)
    assert len(_cases(text)) == 3
    shown: List[str] = [part for element in root.iter() for part in (element.text or "", *element.attrib.values())]
    assert all(unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Cn") for part in shown for char in part.replace("\n", ""))
    (verdict,) = [element.attrib["message"] for element in root.iter("failure") if "type" in element.attrib and element.attrib["type"] != "found"]
    assert verdict == "a ::error::x  ]]> </failure><testcase name='y'/> <!-- & &amp; \\x00\\x1b[2J\\u202e\\ufffe\\ud800 模型 \U0001f3d6"


@pytest.mark.parametrize("number", [*range(0x20), 0x7F, 0x85, 0x9B, 0x2028, 0xD800, 0xDFFF, 0xFEFF, 0xFFFE, 0xFFFF, 0x10FFFF])
def test_every_forbidden_character_is_spelled_out(made: Diagnosis, number: int) -> None:
    """A log may hold any character, in each place of the document that its text reaches."""
    odd = "<%s>" % chr(number)
    made.findings[0] = replace(made.findings[0], verdict=odd, remedy=odd)
    made.run.name = odd
    made.run.folders[:] = ["/" + odd]
    text = junit.text(made._replace(undecided=[Undecided("open", odd, next=odd)]))
    assert chr(number) not in "".join(part for element in _checked(text).iter() for part in (element.text or "", *element.attrib.values())).replace(
        "\n", ""
    )
