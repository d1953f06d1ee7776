"""Links: those of every Markdown file, here and in rendered repositories, lead to a file and to a heading. Offline."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.baking import TEMPLATE, rendered_files
from tests.template.test_readme import documents

FENCED = re.compile(r"^( *)(```+|~~~+).*?^\1\2$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"(`+).+?\1")
TARGETS = (
    re.compile(r"\]\(<?([^)\s>]+)>?(?: \"[^\"]*\")?\)"),  # [text](target), ![picture](target)
    re.compile(r"^ {0,3}\[[^\]]+\]:\s+<?([^\s>]+)", re.MULTILINE),  # [name]: target
    re.compile(r"<(?:a|img|source)\b[^>]*\b(?:href|src|srcset)=\"([^\"]+)\"", re.IGNORECASE),
)
# Without quotation marks: those are in code that is indented.
REFERENCE = re.compile(r"\[[^\]'\"]+\]\[([^\]'\"]+)\]")
ELSEWHERE = re.compile(r"(?:https?|mailto):")


def links(text: str) -> Iterator[str]:
    """The targets of all links and pictures that are not code."""
    prose = CODE.sub("", FENCED.sub("", text))
    for form in TARGETS:
        yield from form.findall(prose)


def anchors(text: str) -> set[str]:
    """The anchors that the forge makes of headings, and those that are written out."""
    found: set[str] = set()
    seen: Counter[str] = Counter()
    prose = FENCED.sub("", text)
    for heading in re.findall(r"^#{1,6} +(.+?) *#*$", prose, re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return {*found, *re.findall(r"<a (?:id|name)=\"([^\"]+)\"", prose)}


def broken(document: Path, *, within: Path) -> list[str]:
    """What is wrong with the links of `document`; those that leave the folder `within` are wrong, too."""
    text = document.read_text("utf-8")
    wrong = [f"[{name}] is not defined" for name in REFERENCE.findall(CODE.sub("", FENCED.sub("", text)))
             if not re.search(rf"^ {{0,3}}\[{re.escape(name)}\]:", text, re.MULTILINE | re.IGNORECASE)]  # fmt: skip
    for link in links(text):
        if ELSEWHERE.match(link):
            continue
        name, _, anchor = link.partition("#")
        target = (document.parent / name).resolve() if name else document
        if not target.exists() or not target.is_relative_to(within.resolve()):
            wrong.append(f"{link}: no such file")
        elif anchor and (target.suffix != ".md" or anchor not in anchors(target.read_text("utf-8"))):
            wrong.append(f"{link}: no such heading")
    return wrong


# The template's own files are checked as they are rendered.
HERE = [path for path in documents() if "<<" not in str(path)]


@pytest.mark.parametrize("document", HERE, ids=lambda path: str(path.relative_to(TEMPLATE)))
def test_every_link_of_this_repository_leads_somewhere(document: Path) -> None:
    assert broken(document, within=TEMPLATE) == []


def test_every_link_of_a_rendered_repository_leads_somewhere_within_it(rendered: Path) -> None:
    pages = [path for path in rendered_files(rendered) if path.suffix == ".md"]
    assert rendered / "README.md" in pages
    assert {page.name: wrong for page in pages if (wrong := broken(page, within=rendered))} == {}


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ('[a](b.md) ![c](b.md) <img src="b.md"> [d]: b.md', []),
        ("[a](b.md#two-words) [b](b.md#again-1) [c](b.md#here) [d](#top)\n\n# Top\n", []),
        ("`[a](missing.md)` ``[a](missing.md)``\n```console\n[a](missing.md)\n```\n", []),
        ("[a](https://example.com/missing)", []),
        ("[a](missing.md)", ["missing.md: no such file"]),
        ('![a](missing.svg "title")', ["missing.svg: no such file"]),
        ('<a href="missing.md">a</a>', ["missing.md: no such file"]),
        ("[d]: missing.md\n", ["missing.md: no such file"]),
        ("[a](../outside.md)", ["../outside.md: no such file"]),
        ("[a](b.md#three)", ["b.md#three: no such heading"]),
        ("[a](b.md#in-code)", ["b.md#in-code: no such heading"]),
        ("[a](#top)", ["#top: no such heading"]),
        ("[a][b]", ["[b] is not defined"]),
    ],
)
def test_a_link_that_leads_nowhere_is_found_in_every_form(tmp_path: Path, text: str, wrong: list[str]) -> None:
    (tmp_path / "outside.md").touch()
    folder = tmp_path / "within"
    folder.mkdir()
    (folder / "b.md").write_text('# Two `words`\n## Again\n## Again\n```\n# In code\n```\n<a id="here"></a>\n', "utf-8")
    (folder / "a.md").write_text(text, "utf-8")
    assert broken(folder / "a.md", within=folder) == wrong
