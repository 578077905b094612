"""The glossary is what the docstrings say."""

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Dict

import pytest


@pytest.fixture
def page(repo: Path) -> ModuleType:
    """A fresh copy of the module that prints the glossary."""
    spec = importlib.util.spec_from_file_location("glossary", str(repo / "scripts" / "render_parts" / "glossary.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_word_has_one_meaning(page: ModuleType) -> None:
    """Each word has a definition that is a sentence, no two are the same, and each is a row of docs/glossary.md."""
    meanings: Dict[str, str] = {word: page.definition(word) for word in page.GLOSSARY}
    assert len(set(meanings.values())) == len(meanings)
    assert {word for word, text in meanings.items() if not text.endswith(".") or not text[0].isupper()} == set()
    rows = list(page.glossary(str))
    assert [row.split(" | ")[0][2:] for row in rows[6:]] == sorted(meanings)


@pytest.mark.parametrize(
    ("name", "says"),
    [("ddp_probe.read.model.Gone", "There is no ddp_probe.read.model.Gone."), ("ddp_probe.read.model.Run#gone", "begins with 'gone: '")],
)
def test_a_word_without_a_definition_says_where_to_write_it(page: ModuleType, name: str, says: str) -> None:
    """A name that does not exist, or a docstring without the paragraph, fails with a sentence that names the table."""
    page.GLOSSARY["gone"] = name
    with pytest.raises(LookupError, match="GLOSSARY in ") as raised:
        page.definition("gone")
    assert says in str(raised.value)
