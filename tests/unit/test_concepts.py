"""The glossary: each of its terms is used on other pages, and no page has another word for the same thing."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

DOCS: Final = Path(__file__).parents[2] / "docs"
GLOSSARY: Final = DOCS / "concepts.md"
# Names of Elixir's Bonny stay as they are. Pages that are made from docstrings are counted by tools/words.py.
LEFT_OUT: Final = ("concepts.md", "reference/", "decisions/")
PAGES: Final = sorted(path for path in DOCS.rglob("*.md") if not path.relative_to(DOCS).as_posix().startswith(LEFT_OUT))
# By term: words that name the same thing, and so are not used.
NOT: Final = {
    "stream": ("reflector", "informer"),
    "reconcile": ("handling", "handlings", "action event"),
    "router": ("intake",),
    "record": ("ledger", "witness", "witnesses"),
    "tombstone": ("bury", "buried", "gravestone"),
    "child": ("kin", "dependant"),
    "axn": ("workplace",),
    "backoff": ("back-off",),
    "resync": ("wave",),
}


def prose(page: Path) -> str:
    """The text of a page without code and targets of links."""
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`|\]\([^)]*\)", " ", text)


def terms() -> list[str]:
    return re.findall(r"^\| \*\*(.+?)\*\* \|", GLOSSARY.read_text("utf-8"), re.MULTILINE)


def is_used(term: str, text: str) -> bool:
    """Whether the term is there, in the singular or the plural, or as the verb that is spelled like it."""
    stem = re.escape(term.removesuffix("y"))
    forms = r"(?:y|ys|ies)" if term.endswith("y") else r"(?:s|es|d|ren|ing)?"
    return re.search(rf"\b{stem}{forms}\b", text, re.IGNORECASE) is not None


def test_the_glossary_is_sorted_and_has_each_term_once() -> None:
    assert terms() == sorted(set(terms()))
    assert set(NOT) <= set(terms())


@pytest.mark.parametrize("term", terms())
def test_each_term_is_used_on_another_page(term: str) -> None:
    others = [path for path in DOCS.rglob("*.md") if path != GLOSSARY and "decisions" not in path.parts]
    assert any(is_used(term, path.read_text("utf-8")) for path in others)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_a_page_uses_the_words_of_the_glossary(page: Path) -> None:
    text = prose(page)
    words = {word: term for term, words in NOT.items() for word in words}
    assert {word: term for word, term in words.items() if re.search(rf"\b{word}\b", text, re.IGNORECASE)} == {}
