"""The texts of rules and checks in Chinese have the same names, numbers and quotations; one that is missing or stale is shown in English."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Dict, Tuple

import pytest
from docs_parts import translations
from texts import mistakes

from ddp_probe.cli import main
from ddp_probe.showing import language
from ddp_probe.showing.language import CHINESE, ENGLISH

TEXTS: Dict[str, Tuple[Any, str]] = {language.key(page, field): (page, field) for page, field in translations.texts()}
SLUGS = sorted({page.slug for page, _ in TEXTS.values() if "-" in page.slug})
CURRENT = [key for key, (page, field) in TEXTS.items() if CHINESE.of(page, field) != getattr(page, field)]


@pytest.mark.parametrize("key", CURRENT)
def test_a_text_says_the_same_in_chinese(key: str) -> None:
    """A text that is translated is in Chinese characters and marks, with the names, numbers and quotations of the English one."""
    page, field = TEXTS[key]
    assert mistakes(getattr(page, field), CHINESE.of(page, field), SLUGS) == []


def test_most_texts_are_translated() -> None:
    """The Chinese texts of rules and of checks are found: of nine in ten, the file has a current one."""
    for prefix in ("DDP", "DOC"):
        assert sum(key.startswith(prefix) for key in CURRENT) > 0.9 * sum(key.startswith(prefix) for key in TEXTS) > 50


def test_every_line_of_the_file_is_of_a_text() -> None:
    """No line of the file is left over from a rule or a check that is gone, none is there twice, and each is a label or has a digest and a text."""
    lines = Path(language.path("zh")).read_text(encoding="utf-8").splitlines()
    lines = [line for line in lines if line and not line.startswith(("#", '"'))]
    assert [line for line in lines if not re.fullmatch(r"D(?:DP|OC)\d{3}\.\w+ [0-9a-f]{8} \S.*", line)] == []
    keys = [line.split(" ")[0] for line in lines]
    assert sorted(set(keys) - set(TEXTS)) == []
    assert len(keys) == len(set(keys))


@pytest.fixture
def a_language(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> language.Language:
    """A language with a file of its own, which has a label, a text that is current and one whose English text has changed."""
    lines = ['"found": "gefunden"', "X1.title %s Eine Karte fehlt." % language.digest("A card is missing."), "X1.remedy 00000000 Alt."]
    (tmp_path / "xx.txt").write_text("# Made up.\n\n%s\n" % "\n".join(lines), encoding="utf-8")
    monkeypatch.setattr(language, "FOLDER", str(tmp_path))
    language._translations.cache_clear()
    return language.Language("xx")


PAGE = SimpleNamespace(id="X1", title="A card is missing.", symptom="It says so.", remedy="Insert one.")


def test_what_is_missing_or_stale_is_in_english(a_language: language.Language) -> None:
    """A text is shown in the language if it translates the English one as it is now; one that is missing or stale, and a label, are in English."""
    assert [a_language.of(PAGE, field) for field in ("title", "symptom", "remedy")] == ["Eine Karte fehlt.", "It says so.", "Insert one."]
    assert [a_language("found"), a_language("clear")] == ["gefunden", "clear"]
    assert [ENGLISH.of(PAGE, field) for field in ("title", "symptom", "remedy")] == [PAGE.title, PAGE.symptom, PAGE.remedy]


def test_an_english_page_reads_no_other_language(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    """In English a page is printed without the file of another language, which in Chinese it asks for."""
    monkeypatch.setattr(language, "FOLDER", str(tmp_path))
    language._translations.cache_clear()
    monkeypatch.setenv("DDP_PROBE_LANG", "en")
    assert main(["explain", "DDP104"]) == 0
    assert "\nwhat you see\n" in capsys.readouterr().out
    monkeypatch.setenv("DDP_PROBE_LANG", "zh")
    with pytest.raises(FileNotFoundError):
        main(["explain", "DDP104"])


def test_what_a_language_lacks_is_told_as_lines_to_fill_in(a_language: language.Language, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing text and a stale one are lines with the digest of today, below the English text; what was written stays in the line."""
    monkeypatch.setattr(translations, "texts", lambda: iter([(PAGE, "title"), (PAGE, "symptom"), (PAGE, "remedy")]))
    monkeypatch.setattr(translations, "labels", lambda: {"found", "clear"})
    first, *lines = translations.told(a_language)
    assert "xx.txt lacks 3 texts" in first
    assert lines == [
        '"clear": ""',
        "# It says so.",
        "X1.symptom %s" % language.digest("It says so."),
        "# Insert one.",
        "X1.remedy %s Alt." % language.digest("Insert one."),
    ]


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
        Path(language.path("zh")),
        *(Path(__file__).parents[2] / page for page in ("README_zh-CN.md", "docs/rules.zh-CN.md", "docs/checks.zh-CN.md")),
    ]
    found = [
        line for page in pages for line in page.read_text(encoding="utf-8").splitlines() if re.search(word, line.replace("通信记录（ledger）", ""))
    ]
    assert found == [], "Write %s." % instead
