"""The check of words finds sentences that are not plain English, in each form of text, and leaves code alone."""

from __future__ import annotations

import json
from textwrap import dedent

import pytest

from tools import words


def texts(found: list[words.Finding]) -> list[str]:
    return [each.text for each in found]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The log tells why.", ["tells"]),
        ("It was told\nanew.", ["told", "anew"]),
        ("They waited in\nvain.", ["in vain"]),
        ("The text is no YAML.", ["is no"]),
        ("There is no cluster. It is no longer there.", []),
        ("Nobody's children", ["Nobody's"]),
        ("the names of those that run", ["those that"]),
        ("Use another name, say.", [", say"]),
        ("You may, say no.", []),
        ("What differs is sent.", ["What"]),
        ("What is missing?", []),
        ("Done. Who asks waits.", ["Who"]),
        ("| what it does | what for? |", ["what", "what"]),
        ("| it waits | stores what it has |", ["it"]),
        ("A handler runs, and troubleshooting starts.", []),
    ],
)
def test_a_sentence_is_found_by_its_words_and_its_beginning(text: str, found: list[str]) -> None:
    assert sorted(texts(list(words.in_markdown(text)))) == sorted(found)


def test_prose_of_a_page_is_checked_and_names_commands_and_links_are_not() -> None:
    page = dedent("""\
        # A page

        See `told`, [the page](told.md) and <https://example.com/told>.

        ```console
        $ echo told
        ```

        ```python
        told = 1  # told
        ```

        told
        """)
    assert [(each.line, each.text) for each in words.in_markdown(page)] == [(10, "told"), (13, "told")]


def test_comments_docstrings_and_strings_are_checked_and_names_are_not() -> None:
    source = dedent('''\
        """What is here."""

        # In a comment that
        # waits in
        # vain, `told` is a name.
        told = f"{told} was told"
        ''')
    found = sorted(words.in_python(source))
    assert [(each.line, each.text) for each in found] == [(1, "What"), (4, "in vain"), (6, "told")]


def test_prompts_are_checked_with_their_choices() -> None:
    prompts = {"name": "Whom is it told?", "forge": {"__prompt__": "The forge", "none": "nobody"}}
    template = json.dumps({"told": "anew", "__prompts__": prompts}, indent=2)
    assert [(each.line, each.text) for each in words.in_prompts(template)] == [(4, "told"), (7, "nobody")]


def test_each_finding_names_words_to_use_instead() -> None:
    assert all(rule.instead for rule in words.RULES)


def test_decisions_and_released_changelog_entries_are_skipped() -> None:
    checked, counted = words.files()
    names = {*checked, *(name for folder in counted.values() for name in folder)}
    assert {"README.md", "cookiecutter.json", "docs/tutorial.md", "CHANGELOG.md", "runtime/bonny/axn.py"} <= names
    assert not any(name.startswith("docs/decisions/") for name in names)
    changelog = "# Changelog\n\n## [Unreleased]\n\n- new\n\n## [0.1.0]\n\n- told\n"
    assert words.unreleased(changelog).splitlines()[-2:] == ["- new", ""]


def test_nothing_can_be_disabled_for_a_line() -> None:
    assert texts(list(words.in_python("x = 'told'  # noqa: words"))) == ["told"]


@pytest.mark.parametrize(("most", "code"), [(0, 1), (1, 0), (2, 0)])
def test_the_number_of_findings_in_a_counted_folder_may_only_fall(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], most: int, code: int
) -> None:
    monkeypatch.setattr(words, "MOST", {"runtime/": most})
    monkeypatch.setattr(words, "files", lambda: ([], {"runtime/": ["a.py"]}))
    monkeypatch.setattr(words, "findings", lambda _: [words.Finding(1, "told", "log")])
    assert words.main([]) == code
    assert ("lower the maximum" in capsys.readouterr().out) is (most == 2)
