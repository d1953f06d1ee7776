"""`invoke prove` on small operators: it finds the bug of each of the broken ones, and none in a sound one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from bench.prove import EXAMPLES, example
from bonny.errors import UsageError
from bonny_dev import prove
from bonny_dev.prove.html import page
from bonny_dev.sandbox import Sandbox
from bonny_dev.tasks import survival
from tests.support.breaking import repository


class Bug(NamedTuple):
    """A controller in tests/broken: the lives that show its bug, and words of the sentence about it."""

    controller: str
    only: str
    sort: str
    found: str


BUGS = (
    Bug(
        "recreated_child",
        "desk/kill-after/changed/delete-*",
        "intermediate state",
        "killed after the delete of configmaps desk (chapter changed) is stored, and started again: a wrong state "
        "remains (chapter changed): ConfigMap desk is missing",
    ),
    Bug(
        "lost_effect",
        "desk/500/created/PUT*",
        "unhandled error",
        "the PUT of /lamps/(UID) to the external service (chapter created) is answered with 500, once: a wrong state "
        "remains (chapter created): record /lamps/(UID of desk) is missing",
    ),
    Bug(
        "random_child_name",
        "desk/kill-after/created/create-*",
        "intermediate state",
        "ConfigMap with a generated name, number 2 should not be there",
    ),
    Bug("status_before_children", "desk/kill-after/created/*", "intermediate state", "ConfigMap desk is missing"),
    Bug(
        "call_before_finalizer",
        "desk/kill-delete/created/PUT*",
        "intermediate state",
        "started again after the object was deleted: a wrong state remains (chapter deleted): record "
        "/lamps/(UID of desk) should not be there",
    ),
    Bug(
        "stale_cache",
        "desk/undisturbed",
        "no fault needed",
        "an object that is changed to a spec, and one that is created with it, end differently: ConfigMap desk is only "
        "there after the change to this spec",
    ),
    Bug("counter", "desk/kill-after/created/*", "intermediate state", 'data.revision is "2", should be "1"'),
    Bug(
        "delete_by_name",
        "desk/at-once/*",
        "unobserved state",
        "the object is deleted and created again at once: a wrong state remains (chapter created-again): ConfigMap "
        "desk is missing",
    ),
    Bug(
        "too_many_children",
        "desk/500/created/create-*",
        "unhandled error",
        "ConfigMap with a generated name, number 3 should not be there",
    ),
    Bug(
        "two_controllers",
        "desk/undisturbed",
        "no fault needed",
        "without any fault: it does not come to rest: the write of configmaps desk (chapter created) was sent",
    ),
    Bug(
        "removed_field",
        "desk/undisturbed",
        "no fault needed",
        'ConfigMap desk: data.note is "beside the window" after the change, missing after the creation',
    ),
    Bug(
        "early_finalizer",
        "desk/kill-after/deleted/*",
        "intermediate state",
        "a wrong state remains (chapter deleted): record /lamps/(UID of desk) should not be there",
    ),
)
# Each has the shape of an unobserved state in Sieve: the end depends on a state that came and went.
UNOBSERVED = (
    Bug(
        "only_grows",
        "desk/undisturbed",
        "no fault needed",
        "an object that is changed to a spec, and one that is created with it, end differently: ConfigMap desk-2 is "
        "only there after the change to this spec",
    ),
    Bug(
        "first_state",
        "desk/coalesced",
        "unobserved state",
        "a watch shows only the last event of each object in 1 s: a wrong state remains (chapter reduced): ConfigMap "
        'desk: data.first is "1", should be "2"',
    ),
)
# Each is found by a life in a lossy, stale or busy world; an undisturbed life does not show its bug.
HIDDEN = (
    Bug(
        "cached_count",
        "desk/under-load",
        "stale state",
        "watches of other kinds are 5 s late, while the object is changed 1,000 times: a wrong state remains (chapter "
        "created): ConfigMap with a generated name, number 3 should not be there",
    ),
    Bug(
        "expected_events",
        "desk/coalesced",
        "unobserved state",
        "a watch shows only the last event of each object in 1 s: a wrong state remains (chapter created-again): "
        "ConfigMap desk is missing",
    ),
    Bug(
        "passing_state",
        "desk/events-lost/created/write-configmaps-desk",
        "unobserved state",
        "no watch event comes for 1 s from the write of configmaps desk (chapter created) on, and then the watches "
        "start again from lists: a wrong state remains (chapter created): record /lamps/(UID of desk) is missing",
    ),
    Bug(
        "earlier_size",
        "desk/older-replica/changed",
        "stale state",
        "started again after the object was changed, and shown the state before that for a while: something is done "
        "more often than without the fault (chapter changed): deleted configmaps desk-3",
    ),
)
# Each is found by what an external service does besides failing.
OUTSIDE = (
    Bug(
        "call_in_background",
        "desk/slow/*",
        "intermediate state",
        "takes 4 s, and the object goes on meanwhile: a wrong state remains (chapter deleted): record "
        "/lamps/(UID of desk) should not be there",
    ),
    Bug(
        "old_answer",
        "desk/old-answer/created/*",
        "stale state",
        "the GET of /lamps/(UID) to the external service (chapter created) is answered with the state before the last "
        "change there: a wrong state remains (chapter created): record /spare-lamps/(UID of desk) should not be there",
    ),
    Bug(
        "taken_for_a_mistake",
        "desk/already-exists/created/*",
        "unhandled error",
        "the PUT of /lamps/(UID) to the external service (chapter created) is carried out, and answered with 409 as if "
        "it had been there before: a wrong state remains (chapter created): ConfigMap desk is missing",
    ),
)
# Each is found by an object that is made from the schema; no other life shows its bug.
MADE = (
    Bug(
        "rare_value",
        "desk/fuzz/*",
        "no fault needed",
        "with object 4 made from the schema: the reconcile fails each time: KeyError: 'fast' (chapter created)",
    ),
    Bug(
        "shown_secret",
        "desk/fuzz/*",
        "no fault needed",
        "with object 4 made from the schema: the value token of Secret desk can be read in the status of Lamp desk",
    ),
)
# Found by an order of two writers; other lives show it only if the order is by chance another one.
ORDERED = (
    Bug(
        "last_writer",
        "desk/order/created/*",
        "stale state",
        "accounts and lamps both write configmaps shared, in either order: the end depends on which of them comes "
        'first (chapter created): ConfigMap shared: data.writer is "accounts" after the order lamps, accounts, "lamps" '
        "after the order accounts, lamps",
    ),
)
QUICK = 2


@pytest.mark.parametrize(
    "bug",
    [
        pytest.param(bug, id=bug.controller, marks=[] if number < QUICK else pytest.mark.slow)
        for number, bug in enumerate((*BUGS, *HIDDEN, *UNOBSERVED, *OUTSIDE, *MADE, *ORDERED))
    ],
)
def test_the_bug_of_a_broken_operator_is_found_and_named(sandbox: Sandbox, tmp_path: Path, bug: Bug) -> None:
    root = repository(tmp_path, bug.controller)

    report = prove.prove(root, prove.Options(only=[bug.only]), say=print, sandbox=sandbox)

    text = "\n".join(report.lines())
    found = [each for each in report.findings if bug.found in each.sentence]
    assert found, text
    assert found[0].plan.sort == bug.sort
    assert report.command(found[0]) in text
    assert found[0].sentence.replace('"', "&quot;") in page(report).replace("&#x27;", "'")


@pytest.mark.slow
@pytest.mark.parametrize("bug", MADE, ids=[bug.controller for bug in MADE])
def test_no_other_life_shows_the_bug_of_a_made_object(sandbox: Sandbox, tmp_path: Path, bug: Bug) -> None:
    root = repository(tmp_path, bug.controller)

    report = prove.prove(root, prove.Options(only=["desk/undisturbed", "desk/kill-*"], fuzz=0), sandbox=sandbox)

    assert report.findings == [], "\n".join(report.lines())
    assert report.passed


@pytest.mark.slow
def test_a_smaller_object_is_found_and_shows_the_bug_again(sandbox: Sandbox, tmp_path: Path) -> None:
    root = repository(tmp_path, "rare_value")

    report = prove.prove(root, prove.Options(only=["desk/fuzz/4"], shrink=90), say=print, sandbox=sandbox)

    (found,) = report.findings
    assert "spec: {blink: fast}" in found.smallest
    again = prove.Options(only=["desk/fuzz/4"], seed=7, forms={"desk": found.smallest})
    with pytest.raises(AssertionError, match="the reconcile fails each time: KeyError: 'fast'"):
        prove.check(root, again, sandbox=sandbox)


@pytest.mark.slow
def test_two_controllers_that_undo_each_other_are_named_by_their_field_managers(
    sandbox: Sandbox, tmp_path: Path
) -> None:
    root = repository(tmp_path, "two_controllers")

    report = prove.prove(root, prove.Options(only=["desk/undisturbed"]), say=print, sandbox=sandbox)

    (found,) = report.findings
    assert "; lamps, lamps/LampController write that object" in found.sentence


@pytest.mark.slow
def test_nothing_is_found_in_a_sound_operator(sandbox: Sandbox, tmp_path: Path) -> None:
    root = repository(tmp_path, "sound")

    report = prove.prove(root, say=print, sandbox=sandbox)

    assert report.findings == [], "\n".join(report.lines())
    assert len(report.passed) > 100
    assert len(report.missed) < len(report.passed) / 10


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_the_lives_of_an_example_without_a_fault_show_nothing(
    sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Regression: a finalizer of the example `finalizer` stayed after its condition became false."""
    monkeypatch.setenv("DNS_TOKEN", "none")

    report = prove.prove(example(tmp_path / name, name), prove.Options(only=["*/undisturbed"]), sandbox=sandbox)

    assert report.findings == [], "\n".join(report.lines())
    assert report.passed


def test_an_operator_with_webhooks_lives_without_their_secret(sandbox: Sandbox, tmp_path: Path) -> None:
    """Regression: each of its lives ended with code 2, because it could not read the Secret with the certificate."""
    root = repository(tmp_path, "reviewed")

    report = prove.prove(root, prove.Options(only=["desk/kill-after/created/*"]), say=print, sandbox=sandbox)

    assert report.findings == [], "\n".join(report.lines())
    assert report.passed


def test_a_life_that_does_not_exist_is_refused_with_an_example(sandbox: Sandbox, tmp_path: Path) -> None:
    root = repository(tmp_path, "sound")

    with pytest.raises(
        UsageError, match=r"^--only desk/409/nothing: there is no such life, for example desk/kill-before"
    ):
        prove.prove(root, prove.Options(only=["desk/409/nothing"]), say=print, sandbox=sandbox)


def test_a_repository_without_a_sample_is_refused(tmp_path: Path) -> None:
    root = repository(tmp_path, "stale_cache")
    (root / "samples" / "desk.yaml").unlink()

    with pytest.raises(UsageError, match="holds no sample of a kind that the operator handles"):
        prove.prove(root, say=print)


def test_an_operator_of_namespaces_is_refused(tmp_path: Path) -> None:
    """Regression: their deletion never ends in a sandbox, so a sound operator seemed to keep its finalizer."""
    root = repository(tmp_path, "sound", package="lamps_in_namespaces")
    path = root / "src" / "lamps_in_namespaces" / "controllers.py"
    path.write_text(path.read_text("utf-8").replace("ConfigMap", "Namespace"), "utf-8")

    with pytest.raises(UsageError, match=r"^the operator owns Namespace: nothing in a sandbox ends the deletion"):
        prove.prove(root, say=print)


@pytest.mark.parametrize(
    ("minutes", "report", "sentence"),
    [
        (-1, "", "--minutes -1: use 0, for no limit, or more"),
        (0, "no/where.html", "--report no/where.html: there is no folder"),
    ],
)
def test_a_bad_option_is_refused_before_anything_starts(
    tmp_path: Path, minutes: int, report: str, sentence: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(sentence)):
        survival.run(tmp_path, prove.Options(minutes=minutes), report=report)
