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
        ("Done. Who asks waits.", ["Who", "asks"]),
        ("| what it does | what for? |", ["what", "what"]),
        ("| it waits | stores what it has |", ["it", "what"]),
        ("A handler runs, and troubleshooting starts.", []),
    ],
)
def test_a_sentence_is_found_by_its_words_and_its_beginning(text: str, found: list[str]) -> None:
    assert sorted(texts(list(words.in_markdown(text)))) == sorted(found)


# Sentences that users read until they were found by these rules, and the sentences in their place.
REVIEWED = (
    ("handlers were cancelled: their time was over", "cancelled running handlers: grace period exceeded"),
    ("a handler that would not end was abandoned", "abandoned a handler that ignored cancellation"),
    ("certificates are not kept up", "cannot renew the certificate"),
    ("no new certificate", "cannot load the new certificate; still serving the previous certificate"),
    ("events are refused", "the API server rejected an event"),
    ("permissions are not known yet", "permission check failed, trying again"),
    ("no permission is missing any more", "all required permissions are granted"),
    ("waits", "retry"),
    (
        "Namespace in which the operator runs and keeps its Lease; __ALL__ only says what is watched.",
        "Namespace of the operator and of its Lease. The value __ALL__ affects only which namespaces are watched.",
    ),
    (
        "How long webhooks are still answered after SIGTERM: API servers go on to use their connections.",
        "Seconds to keep serving webhooks after SIGTERM, because API servers reuse open connections.",
    ),
    (
        "to clients that may read it, and no longer beside the probes.",
        "to authorized clients. /metrics is then not served on BONNY_HTTP_PORT.",
    ),
    (
        "the stage X begins out of turn",
        'axn.stage("X") is out of order: enter each stage of C once, in this order: A, B',
    ),
    ("too late for the status of Widget a/b", "the status of Widget a/b was already written: change it before"),
    ("no version of Widget says hub = True", "no version of Widget has hub = True: set it on v1 or v2"),
    (
        "Widget v1 is not alone in a module, so it cannot be copied: move it to one of its own",
        "cannot copy Widget v1: its module has other classes; move it to api/v1/widget.py",
    ),
    (
        "with --from-crd the definition says all of the kind: leave out its names and options",
        "--from-crd takes names and options from the CRD: remove the other arguments",
    ),
    ("Next: put it in the place of K", "Next: replace K with it, then change the classes"),
    (
        "W cannot be a kind here: Python or the generated files use this name themselves",
        "W cannot be a kind: Python or a generated file already uses the name; use MyW",
    ),
    (
        "the caBundle of X does not fit the certificate in Secret Y: the log of the operator that leads says why",
        "the caBundle of X does not match the certificate in Secret Y: see the log of the leader",
    ),
    ("defaults and rules in Python for what no policy can say", "rules in Python that a policy cannot express"),
    (
        "A yes counts for a minute, so a binding that you delete works for a minute more.",
        "Positive reviews are cached for one minute, so a deleted binding takes up to a minute to have effect.",
    ),
    (
        "Objects that cannot be in its namespace have the namespace in their names",
        "Cluster-scoped objects have the namespace in their names",
    ),
    ("No webhook is asked about that.", "Deleting a webhook configuration does not call webhooks."),
    (
        "it says where they differ, writes nothing, and `--version v1` takes one.",
        "It lists the differences and writes nothing; `--version v1` ports one version.",
    ),
    ("Have etcd and kube-apiserver at hand", "Download or build etcd and kube-apiserver."),
    (
        "Strike an operator at work with random faults, and check that all is well afterwards.",
        "Inject random faults into a running operator and check the end state.",
    ),
)


@pytest.mark.parametrize(("before", "after"), REVIEWED)
def test_sentences_that_had_to_be_read_twice_are_found_and_their_replacements_are_not(before: str, after: str) -> None:
    assert list(words.in_text(before))
    assert not list(words.in_text(after))


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("It sends what differs.", "What differs?"),
        ("The error says why.", "The error has the reason."),
        ("The runtime knows the kind.", "The table has the kind."),
        ("The scope is not known.", "A known bug."),
        ("The pod asks for memory.", "Ask an administrator for it."),
        ("The run goes on.", "The run continues. There is no Go on PATH."),
        ("Delete the one that is older.", "The one exception: that one replica."),
        ("A module of one of its own.", "Its own module."),
        ("A list which has items which are empty.", "A list which has items. A key which is empty."),
        ("It is not there any more.", "It is no longer there."),
    ],
)
def test_each_pattern_finds_wrong_sentences_and_no_right_ones(wrong: str, right: str) -> None:
    assert list(words.in_text(wrong))
    assert not list(words.in_text(right))


def test_names_of_alerts_metrics_labels_and_log_keys_are_read_as_words() -> None:
    alerts = "- alert: OperatorHandlingsFail\n  expr: bonny_stream_trouble_total > 0  # tells\n"
    assert texts(list(words.in_plain(alerts))) == ["tells", "trouble", "Handlings"]
    source = 'counter("bonny_stream_trouble_total", text)\nlog.info("read", extra={"said_by": name, "told": key})\n'
    assert sorted(texts(list(words.in_python(source)))) == ["said", "told", "trouble"]
    assert not list(words.in_plain("- alert: OperatorStreamFailing\n  expr: bonny_stream_failing == 1\n"))


def test_templates_are_read_without_their_expressions() -> None:
    assert texts(list(words.in_plain('"""{{ what }}: {% if told %}anew{% endif %}."""'))) == ["anew"]


def test_names_of_tests_are_read_as_sentences_and_the_rest_of_a_test_is_not() -> None:
    source = "async def test_what_was_sent_is_told() -> None:\n    assert told\n\n\ndef told() -> None: ...\n"
    assert sorted(texts(list(words.in_names_of_tests(source)))) == ["told", "what"]


def test_strings_that_users_see_are_not_counted_but_checked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = list(words.in_python('"""It was told."""\nx = "it was told"  # told'))
    assert sorted((each.line, each.shown) for each in found) == [(1, False), (2, False), (2, True)]
    monkeypatch.setattr(words, "MOST", {"runtime/bonny/": 2})
    monkeypatch.setattr(words, "files", lambda: ([], {"runtime/bonny/": ["a.py"]}))
    monkeypatch.setattr(words, "findings", lambda _: found)
    assert words.main([]) == 1
    assert "a.py:2: 'told' is not plain English" in capsys.readouterr().out


def test_each_allowed_phrase_is_in_its_file_is_a_finding_and_has_a_reason() -> None:
    for allowed in words.ALLOWED:
        assert allowed.phrase in (words.ROOT / allowed.name).read_text("utf-8")
        assert list(words.in_text(allowed.phrase))
        assert allowed.reason


def test_yaml_dashboards_ci_files_and_templates_are_checked() -> None:
    checked, counted = words.files()
    manifest = "runtime/bonny_dev/manifest/"
    template = "<<cookiecutter.operator_slug>>/"
    assert {
        *(f"{manifest}alerts.yaml", f"{manifest}dashboard.json", f"{manifest}objects/deployment.yaml"),
        *(
            f"{template}Dockerfile",
            f"{template}.github/workflows/<% if cookiecutter.ci == 'github' %>ci.yml<% endif %>",
        ),
        *("runtime/bonny_dev/scaffold/controller.py.j2", "pyproject.toml", "docs/reference/tasks.md"),
    } <= set(checked)
    assert "tests/unit/test_metrics.py" in counted["tests/"]


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
