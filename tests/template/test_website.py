"""The site: every page is in it, nothing is fetched from elsewhere, links lead somewhere, and it needs no server."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.support.baking import TEMPLATE
from tests.support.chromium import CHROMIUM, chromium
from tools import website

# The search is an element with a tree of its own.
INPUT = "!!document.activeElement?.shadowRoot?.activeElement"
FOUND = "(document.activeElement?.shadowRoot?.textContent ?? '')"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return website.build(tmp_path_factory.mktemp("site"))


def test_every_page_is_in_the_navigation_once_and_decisions_are_in_their_index() -> None:
    listed = [page for page in website.pages() if not page.startswith("docs/decisions/0")]
    assert sorted(website.in_navigation()) == listed


def test_every_page_is_built_and_its_links_lead_somewhere(site: Path) -> None:
    built = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    wanted = {re.sub(r"README\.html$", "index.html", page.removesuffix(".md") + ".html") for page in website.pages()}
    assert built - {"404.html"} == wanted
    assert website.broken(site) == []


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    assert website.foreign(site) == []


def test_the_search_has_its_words_in_a_file_and_works_without_a_server(site: Path) -> None:
    words = (site / "search.js").read_text("utf-8")
    places = {item["location"] for item in json.loads((site / "search.json").read_text("utf-8"))["items"]}
    assert "Finalizer" in words
    assert "docs/concepts.html" in places
    assert not [place for place in places if place.startswith("docs/decisions/0")]
    page = (site / "docs" / "concepts.html").read_text("utf-8")
    assert '<script src="./site/iframe-worker/shim.js"' in page
    assert "IFrameWorker" in (site / "docs" / "site" / "iframe-worker" / "shim.js").read_text("utf-8")


@pytest.mark.slow  # a browser of its own
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed here")
@pytest.mark.parametrize("width", [400, 1280])
async def test_a_search_from_a_file_finds_a_page_and_leads_to_it(site: Path, tmp_path: Path, width: int) -> None:
    async with chromium(tmp_path) as browser:
        await browser.show(width=width, height=900, dark=False)
        await browser.open((site / "index.html").as_uri())
        # The button does nothing before its script has run, so it is pressed until the field is there.
        await browser.until(f"{INPUT} || (document.querySelector('.md-search__button')?.click(), false)")
        for letter in "finalizer":
            await browser.press(letter)
        await browser.until(f"{FOUND}.includes('A finalizer is the only guarantee that cleanup runs')")
        await browser.press("Enter")
        await browser.until(
            "location.pathname.endsWith('/docs/reference/steps.html') && location.hash === '#finalizer'"
        )
        assert browser.complaints == []


def test_there_is_a_light_and_a_dark_mode(site: Path) -> None:
    page = (site / "index.html").read_text("utf-8")
    assert set(re.findall(r'data-md-color-media="([^"]*)"', page)) == {
        "(prefers-color-scheme)",
        "(prefers-color-scheme: light)",
        "(prefers-color-scheme: dark)",
    }


def test_links_to_source_lead_to_this_commit(site: Path) -> None:
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=TEMPLATE, capture_output=True, text=True, check=True
    ).stdout.strip()
    page = (site / "docs" / "reference" / "from-bonny.html").read_text("utf-8")
    assert f'href="{website.forge()}/blob/{commit}/runtime/bonny/api/version.py"' in page
    assert f'href="{website.forge()}/raw/{commit}/docs/reference/from-bonny.md"' in page


# --- pages as the generator reads them --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("[a](b.md#c) ![d](images/e.svg)", "[a](b.md#c) ![d](images/e.svg)"),
        ("[a](../LICENSE)", "[a](SOURCE/LICENSE)"),
        ("[a](../runtime/x.py#L3) [b](#c)", "[a](SOURCE/runtime/x.py#L3) [b](#c)"),
        (
            "[a](https://example.com/b) [c](mailto:d@example.com)",
            "[a](https://example.com/b) [c](mailto:d@example.com)",
        ),
        ("`[a](../LICENSE)`", "`[a](../LICENSE)`"),
        ("```text\n[a](../LICENSE)\n```\n[a](../LICENSE)", "```text\n[a](../LICENSE)\n```\n[a](SOURCE/LICENSE)"),
        (r"| `X \| None` | x |", "| `X | None` | x |"),
        ("<details><summary>", '<details markdown="1"><summary>'),
    ],
)
def test_a_page_is_changed_where_forge_and_site_differ(text: str, read: str) -> None:
    known = {"docs/b.md", "docs/images/e.svg"}
    assert website.staged(text, "docs/a.md", known=known, source="SOURCE") == read


# --- what the build refuses -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("page", "wrong"),
    [
        ('<a href="b.html">', []),
        ('<a href="b.html#here">', []),
        ('<a href="https://example.com">', []),
        ('<a href="c.html">', ["a.html: c.html leads to no file"]),
        ('<a href="b.html#there">', ["a.html: b.html#there leads to no heading"]),
        ('<a href="#there">', ["a.html: #there leads to no heading"]),
        ('<img src="x.png">', ["a.html: x.png leads to no file"]),
        ('<script src="x.js"></script>', ["a.html: x.js leads to no file"]),
    ],
)
def test_a_broken_link_is_found(tmp_path: Path, page: str, wrong: list[str]) -> None:
    (tmp_path / "b.html").write_text('<p id="here">', "utf-8")
    (tmp_path / "a.html").write_text(page, "utf-8")
    assert website.broken(tmp_path) == wrong


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.html", '<script src="https://example.com/x.js"></script>'),
        ("a.html", '<link rel="stylesheet" href="//example.com/x.css">'),
        ("a.html", '<img src="https://example.com/x.png">'),
        ("a.js", 'load("https://example.com/x.js")'),
        ("a.css", "@import 'https://example.com/x.css';"),
        ("a.css", "a { background: url(https://example.com/x.png) }"),
    ],
)
def test_a_file_from_elsewhere_is_found(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, "utf-8")
    assert len(website.foreign(tmp_path)) == 1


def test_a_link_to_another_site_is_not_a_file_that_is_fetched(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<a href="https://example.com">', "utf-8")
    (tmp_path / "a.js").write_text('name("http://www.w3.org/2000/svg")', "utf-8")
    assert website.foreign(tmp_path) == []


@pytest.mark.slow  # a build of its own; the sentences are tested above without one
def test_a_build_with_a_broken_link_ends_with_one_line_for_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stage(out: Path, source: str) -> None:
        original(out, source)
        (out / "docs" / "concepts.md").write_text("# Concepts\n\n[a](missing.html)\n", "utf-8")

    original = website._stage
    monkeypatch.setattr(website, "_stage", stage)
    assert website.main(["--out", str(tmp_path)]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert "docs/concepts.html: missing.html leads to no file" in lines
    assert "docs/architecture.html: concepts.html#how-a-handler-ends leads to no heading" in lines
