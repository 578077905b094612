"""The page of every recorded run: it is whole, it stands alone, it says what the report says, and each claim leads to its line."""

import json
import re
from pathlib import Path
from typing import Callable, List

import pytest
from page_reader import PageReader

from ddp_probe.judging.judge import Diagnosis
from ddp_probe.showing import safe
from ddp_probe.showing.brief_form import questions
from ddp_probe.showing.html import html_page
from ddp_probe.showing.html.page_words import WORDS
from ddp_probe.showing.paths import Paths

_RECORDED = Path(__file__).resolve().parent.parent / "recorded"
_JOBS = sorted({"%s/%s" % (log.parts[-3], log.parts[-2]) for log in _RECORDED.glob("*/*/*.jsonl")})
_TEMPLATES = Path(__file__).resolve().parents[2] / "ddp_probe" / "showing" / "html" / "templates"
_each_job = pytest.mark.parametrize("job", _JOBS)
_drawn = pytest.mark.sample(20, of="pages")


@_drawn
@_each_job
def test_its_tags_are_balanced_and_its_links_lead_somewhere(job: str, made: Callable[[str], str]) -> None:
    """Each element is closed in its place, no place has two names, and each link within the page leads to a place in it."""
    read = PageReader(made(job))
    assert read.faults == []
    places = read.all("id")
    assert len(set(places)) == len(places)
    assert {link[1:] for link in read.all("href")} <= set(places)
    assert {name for names in read.all("aria-labelledby") for name in names.split()} <= set(places)


@_drawn
@_each_job
def test_it_needs_nothing_else(job: str, made: Callable[[str], str]) -> None:
    """Nothing is loaded from elsewhere, no element carries a style or a handler of its own, and the policy lets nothing else in."""
    read = PageReader(made(job))
    assert read.all("src") + read.all("srcset") + read.all("xlink:href") + read.all("style") == []
    assert all(link.startswith("#") for link in read.all("href"))
    assert read.those("link", "img", "iframe", "object", "embed", "base", "form") == []
    assert [name for _, attributes in read.elements for name in attributes if name.startswith("on")] == []
    (style,) = read.contents["style"]
    assert set(re.findall(r"url\((.)", style)) == {"#"}  # A part of the page itself.
    assert "@import" not in style
    (policy,) = [attributes["content"] for _, attributes in read.those("meta") if attributes.get("http-equiv") == "Content-Security-Policy"]
    assert re.fullmatch(r"default-src 'none'; style-src 'sha256-[\w+/=]+'; script-src 'sha256-[\w+/=]+'; base-uri 'none'; form-action 'none'", policy)


@_drawn
@_each_job
def test_it_says_what_the_report_says(job: str, made: Callable[[str], str], recorded: Callable[[str], Diagnosis]) -> None:
    """The verdict is the first heading; each finding's name, sentence and change, and each open question with its next step, are there."""
    read, diagnosis = PageReader(made(job)), recorded(job)
    assert read.contents["h1"] == [WORDS[diagnosis.verdict]]
    for finding in diagnosis.findings:
        assert finding.id in read.text
        assert safe.line(Paths(diagnosis.run)(finding.verdict)) in read.contents["h2"]
        lines = [line for line in finding.remedy.split("\n") if ".py" not in line]  # A path is shortened.
        assert [line for line in lines if " ".join(safe.line(line).split()) not in read.text] == []
    asked = questions(diagnosis)
    assert read.text.count(WORDS["next"]) == min(len(asked), 12)
    assert [
        reason.because for reason in asked[:12] if ".py" not in reason.because and " ".join(safe.line(reason.because).split()) not in read.text
    ] == []


@_drawn
@_each_job
def test_each_claim_leads_to_its_line(job: str, made: Callable[[str], str], recorded: Callable[[str], Diagnosis]) -> None:
    """Below each finding there is a link to each line of a log that it names first, and at its end is that line's own JSON."""
    text, diagnosis = made(job), recorded(job)
    read = PageReader(text)
    for finding in diagnosis.findings[:1]:
        for one in finding.evidence[:1]:
            label = "%s:%d" % (Path(one.file).name, one.line)
            assert any(link.endswith(label) for link in read.contents["a"])
    events = [entry for entry in read.contents["pre"] if entry.startswith('{"event"')]
    assert all(isinstance(json.loads(entry), dict) for entry in events)
    assert WORDS["line_absent"] not in text


@_drawn
@_each_job
def test_everybody_can_read_it(job: str, made: Callable[[str], str]) -> None:
    """Headings go down one step at a time, the page has its landmarks and a language, header cells say what they head, and each lane has words."""
    read = PageReader(made(job))
    levels = [int(tag[1]) for tag, attributes in read.those("h1", "h2", "h3", "h4") if attributes.get("id") != "line-title"]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in zip(levels, levels[1:]))
    assert [tag for tag, _ in read.those("header", "nav", "main", "footer")] == ["header", "nav", "main", "footer"]
    assert [attributes["lang"] for _, attributes in read.those("html")] == ["en"]
    assert all(attributes.get("scope") for _, attributes in read.those("th"))
    assert all(attributes.get("type") == "button" for _, attributes in read.those("button"))
    assert all(attributes.get("aria-label") for _, attributes in read.those("svg") if attributes.get("role") == "img")
    assert all(title.strip() for title in read.contents.get("title", []))


def test_all_words_are_in_the_table() -> None:
    """No template has a word of its own: those of the page are in words.py, each is used, and those of commands stay as they are."""
    templates = {path.name: path.read_text(encoding="utf-8") for path in sorted(_TEMPLATES.glob("*.j2"))}
    found: List[str] = []
    for name, text in templates.items():
        outside = re.sub(r"<(style|script)\b.*?</\1>|<code>.*?</code>|\{%.*?%\}|\{\{.*?\}\}|\{#.*?#\}|<[^>]*>", " ", text, flags=re.DOTALL)
        found += ["%s: %s" % (name, word) for word in re.findall(r"[A-Za-z]{2,}", outside)]
    assert found == []
    used = "".join(templates.values())
    named = {name for name in WORDS if re.search(r'\bw\.%s\b|"%s"' % (name, name), used) or name.startswith(("kind_", "skew_"))}
    code = "".join(path.read_text(encoding="utf-8") for path in sorted(_TEMPLATES.parent.glob("*.py")) if path.name != "words.py")
    named |= {name for name in WORDS if 'WORDS["%s"]' % name in code}
    assert sorted(set(WORDS) - named - {"found", "clear", "undecided"}) == []


@pytest.mark.parametrize(
    ("job", "has", "has_not"),
    [
        ("new/09_extra_layer_on_one_rank", ["segmentation_head.weight", "Models that differ"], ["Stacks of the ranks"]),
        ("new/13_mixed_environment", ["TORCH_DISTRIBUTED_DEBUG", "What differs between ranks and must not"], ["Models that differ"]),
        ("new/03_submodule_left_behind", ["Ranks and devices", "gcu:0", "gcu:1"], ["Models that differ"]),
        ("new/12_stopped_by_sigstop", ["Stacks of the ranks"], ["Models that differ"]),
        ("new/00_healthy_cards", ["Clear"], ["What to change", "Evidence"]),
    ],
)
def test_a_section_is_there_if_it_has_something_to_show(job: str, has: List[str], has_not: List[str], made: Callable[[str], str]) -> None:
    """Differing models, environments and stacks are shown of runs that have them, and of no others."""
    text = PageReader(made(job)).text
    assert [word for word in has if word not in text] == []
    assert [word for word in has_not if word in text] == []


def test_memory_over_time_is_a_row_of_bars(told: Callable[[str], Diagnosis]) -> None:
    """Below what a rank did, bars as high as what it held of its card say how much that was and since when; without device.state there are none."""
    log = """
{"event":"process.start","rank":0,"world_size":1,"ts":"2026-11-24T12:00:00.000000Z"}
{"event":"device.state","rank":0,"ts":"2026-11-24T12:00:01.000000Z","when":"periodic","devices":[{"device":"gcu:0","allocated":%d}]}
{"event":"device.state","rank":0,"ts":"2026-11-24T12:00:02.000000Z","when":"end","devices":[{"device":"gcu:0","allocated":%d}]}
{"event":"process.end","rank":0,"ts":"2026-11-24T12:00:03.000000Z","exit_code":0}
"""
    assert "0 bytes on gcu:0; since 1 s" in html_page.text(told(log % (0, 0)))
    log %= (1 << 30, 3 << 30)
    text = html_page.text(told(log))
    assert "1.0 GiB on gcu:0; since 1 s" in text
    assert "3.0 GiB on gcu:0; since 2 s" in text
    assert 'height="5.33"' in text
    assert "swatch memory" in text
    assert "swatch memory" not in html_page.text(told(log.replace("device.state", "device.set")))
