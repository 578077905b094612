"""The texts of rules and checks in Chinese have the same names, numbers and quotations; one that is missing or stale is shown in English."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict, Iterator, Tuple

import pytest
from docs_parts import translations
from texts import mistakes

from ddp_probe.cli import main
from ddp_probe.shared.schema import Site
from ddp_probe.showing import catalogue, language
from ddp_probe.showing.language import CHINESE, ENGLISH
from ddp_probe.wording.text import fact_of, say
from ddp_probe.wording.words import named, place

TEXTS: Dict[str, Tuple[Any, str]] = {"%s.%s" % (page.id, field): (page, field) for page, field in translations.texts()}
SLUGS = sorted({page.slug for page, _ in TEXTS.values() if "-" in page.slug})
CURRENT = [key for key, (page, field) in TEXTS.items() if CHINESE.of(page, field) != getattr(page, field)]
EVERY_TEXT = {*translations.messages(), *translations.constants()}
TEMPLATES = sorted({template for template, _ in translations.templates() if template in CHINESE.translations})
_PLACE = re.compile(r"\{(\w+)[^{}]*\}")
_HEAD = 'msgid ""\nmsgstr "Language: xx\\n"\n\n'


@pytest.mark.parametrize("key", CURRENT)
def test_a_text_says_the_same_in_chinese(key: str) -> None:
    """A text that is translated is in Chinese characters and marks, with the names, numbers and quotations of the English one."""
    page, field = TEXTS[key]
    assert mistakes(getattr(page, field), CHINESE.of(page, field), SLUGS) == []


@pytest.mark.parametrize("template", TEMPLATES)
def test_a_template_has_the_same_places_in_chinese(template: str) -> None:
    """What a run is told with names in Chinese all that it names in English, and nothing else."""
    assert set(_PLACE.findall(CHINESE(template))) == set(_PLACE.findall(template))


def test_most_texts_are_translated() -> None:
    """The Chinese texts of rules and of checks are found: of nine in ten, the files have a current one."""
    for prefix in ("DDP", "DOC"):
        assert sum(key.startswith(prefix) for key in CURRENT) > 0.9 * sum(key.startswith(prefix) for key in TEXTS) > 50


@pytest.mark.parametrize("path", catalogue.files("zh"), ids=lambda path: Path(path).name)
def test_every_entry_of_a_file_is_of_a_text(path: str) -> None:
    """No entry of a file is left over from a text that is gone or has changed, and none is there twice in all files."""
    entries = catalogue.read_po(Path(path).read_text(encoding="utf-8").splitlines(keepends=True))
    assert [text for text in entries if text not in EVERY_TEXT] == []
    others = [other for other in catalogue.files("zh") if other != path]
    elsewhere = {text for other in others for text in catalogue.read_po(Path(other).read_text(encoding="utf-8").splitlines(keepends=True))}
    assert sorted(set(entries) & elsewhere) == []
    assert Path(path).read_text(encoding="utf-8").count("\nmsgid ") - 1 == len(entries)


@pytest.fixture
def a_language(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[language.Language]:
    """A language with a file of its own, which has a label, a text that is current, one that is fuzzy, and a template."""
    entries = [
        'msgid "found"\nmsgstr "gefunden"',
        '#. X1.title\nmsgid ""\n"A card "\n"is missing."\nmsgstr ""\n"Eine Karte "\n"fehlt."',
        '#, fuzzy\nmsgid "Insert one."\nmsgstr "Alt."',
        'msgid "It says so."\nmsgstr ""',
        'msgid "{who:capital} {who:waits|wait} at {where}."\nmsgstr "An {where} {who:wartet|warten} {who}."',
        'msgid "rank {ranks}"\nmsgstr "Rang {ranks}"',
        'msgid "ranks {ranks}"\nmsgstr "die Ränge {ranks}"',
    ]
    (tmp_path / "xx").mkdir()
    (tmp_path / "xx" / "all.po").write_text(_HEAD + "\n\n".join(entries) + "\n", encoding="utf-8")
    monkeypatch.setattr(catalogue, "FOLDER", str(tmp_path))
    catalogue.translations.cache_clear()
    yield language.Language("xx")
    catalogue.translations.cache_clear()


PAGE = SimpleNamespace(id="X1", title="A card is missing.", symptom="It says so.", remedy="Insert one.")


def test_what_is_missing_or_fuzzy_is_in_english(a_language: language.Language) -> None:
    """A text is shown in the language if it has a translation; one without, one that is marked as fuzzy, and a label, are in English."""
    assert [a_language.of(PAGE, field) for field in ("title", "symptom", "remedy")] == ["Eine Karte fehlt.", "It says so.", "Insert one."]
    assert [a_language("found"), a_language("clear")] == ["gefunden", "clear"]
    assert [ENGLISH.of(PAGE, field) for field in ("title", "symptom", "remedy")] == [PAGE.title, PAGE.symptom, PAGE.remedy]


def test_a_text_of_a_run_is_written_in_the_language(a_language: language.Language) -> None:
    """A template is filled with the same values, each written for the language; the words that a number decides are the language's own."""
    waits = [say("{who:capital} {who:waits|wait} at {where}.", who=named(ranks), where=place(Site("a.py", 3, "f"))) for ranks in ([1], [0, 1])]
    assert waits == ["Rank 1 waits at a.py:3.", "Ranks 0-1 wait at a.py:3."]
    assert [a_language.text(text) for text in waits] == ["An a.py:3 wartet Rang 1.", "An a.py:3 warten die Ränge 0-1."]
    assert [ENGLISH.text(text) for text in waits] == waits
    assert fact_of(waits[1]) == {"who": [0, 1], "where": {"file": "a.py", "line": 3, "function": "f"}}


def test_an_english_page_reads_no_other_language(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    """In English a page is printed without the files of another language, which in Chinese it asks for."""
    monkeypatch.setattr(catalogue, "FOLDER", str(tmp_path))
    catalogue.translations.cache_clear()
    monkeypatch.setenv("DDP_PROBE_LANG", "en")
    assert main(["explain", "DDP104"]) == 0
    assert "\nwhat you see\n" in capsys.readouterr().out
    monkeypatch.setenv("DDP_PROBE_LANG", "zh")
    with pytest.raises(FileNotFoundError):
        main(["explain", "DDP104"])
    catalogue.translations.cache_clear()


def test_what_a_language_lacks_is_told_as_entries_to_fill_in(a_language: language.Language, monkeypatch: pytest.MonkeyPatch) -> None:
    """A text without a translation, and a fuzzy one, is an entry with its place; one without letters needs none."""
    known = {"A card is missing.": "X1.title", "It says so.": "X1.symptom", "Insert one.": "X1.remedy", "found": "a page", "{it}: {it}": "a.py"}
    monkeypatch.setattr(translations, "messages", lambda: known)
    first, *lines = translations.told(a_language)
    assert "xx lacks 2 texts" in first
    assert lines == ["", "#. X1.symptom", 'msgid "It says so."', 'msgstr ""', "", "#. X1.remedy", 'msgid "Insert one."', 'msgstr ""']


@pytest.mark.parametrize(
    ("chinese", "mistake"),
    [
        ("", "it is missing"),
        ("Move it: model.to(device).", "it has no Chinese character"),
        ("先移动模型。", "it lacks 2, model.to"),
        ("先用 model.to(device) 移动模型，2 次，再用 torch.load。", "it adds torch.load"),
        ("先移动模型, 用 model.to(device)，2 次。", "an ASCII mark beside a Chinese character"),
        ("先移动模型（model.to(device)）2次。", "no space between a Chinese character and a Latin one"),
        ("先移动模型 (用 model.to(device))，2 次。", "ASCII brackets around Chinese text"),
        ("先移动 模型：model.to(device)，2 次。", "a space between two Chinese characters"),
        ("先移动模型： model.to(device)，2 次。", "a space beside a Chinese mark"),
        ("用 model.to(device) 移动 2 次，见 model-never-moved。", "it adds model-never-moved"),
        ("用 model.to(device) 移动 2 次，否则报 'no device'。", "it adds 'no device'"),
    ],
)
def test_a_mistake_is_found(chinese: str, mistake: str) -> None:
    """Each of these texts is found to be wrong."""
    assert [text for text in mistakes("Move it twice: model.to(device), 2 times.", chinese, SLUGS) if text.startswith(mistake)]


def test_a_good_text_is_let_through() -> None:
    """A text that says the same in Chinese has no mistake."""
    assert mistakes("Move it: model.to(device), 2 times; see model-never-moved.", "移动 2 次：model.to(device)。见 model-never-moved。", SLUGS) == []


@pytest.mark.parametrize(
    ("word", "instead"), [("作业", "任务"), ("挂起", "卡住"), ("账本", "通信记录（ledger）"), ("让位于", "优先级低于"), ("包装(?!脚本)", "封装")]
)
def test_a_thing_has_one_word_in_chinese(word: str, instead: str) -> None:
    """Of two Chinese words for one thing the texts, the labels and the README use one."""
    pages = [
        *map(Path, catalogue.files("zh")),
        *(Path(__file__).parents[2] / page for page in ("README_zh-CN.md", "docs/rules.zh-CN.md", "docs/checks.zh-CN.md")),
    ]
    found = [
        line for page in pages for line in page.read_text(encoding="utf-8").splitlines() if re.search(word, line.replace("通信记录（ledger）", ""))
    ]
    assert found == [], "Write %s." % instead
