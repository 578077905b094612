"""The glossary is what the docstrings say."""

import importlib
from pathlib import Path
from types import ModuleType
from typing import Dict

import pytest


@pytest.fixture
def page(repo: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module that prints the glossary, with a table that the test may change."""
    monkeypatch.syspath_prepend(str(repo / "scripts"))
    module = importlib.import_module("docs_parts.glossary")
    monkeypatch.setattr(module, "GLOSSARY", dict(module.GLOSSARY))
    return module


def test_every_word_has_one_meaning(page: ModuleType) -> None:
    """Each word has a definition that is a sentence, no two are the same, and each is a row of docs/contributing/glossary.md."""
    meanings: Dict[str, str] = {word: page.definition(word) for word in page.GLOSSARY}
    assert len(set(meanings.values())) == len(meanings)
    assert {word for word, text in meanings.items() if not text.endswith(".") or not text[0].isupper()} == set()
    rows = [line for line in page.glossary_page().splitlines() if line.startswith("| ")]
    assert [row.split(" | ")[0][2:] for row in rows[1:]] == sorted(meanings)


@pytest.mark.parametrize(
    ("name", "says"),
    [("ddp_probe.reading.model.Gone", "There is no ddp_probe.reading.model.Gone."), ("ddp_probe.reading.model.Run#gone", "begins with 'gone: '")],
)
def test_a_word_without_a_definition_says_where_to_write_it(page: ModuleType, name: str, says: str) -> None:
    """A name that does not exist, or a docstring without the paragraph, fails with a sentence that names the table."""
    page.GLOSSARY["gone"] = name
    with pytest.raises(LookupError, match="GLOSSARY in ") as raised:
        page.definition("gone")
    assert says in str(raised.value)
