"""Records: what to do about an object, which deletions are owed, and what outlives an object, a term and a restore."""

from __future__ import annotations

import itertools
from typing import Any, Final, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bonny.core import records as records_module
from bonny.core.handled import Handled, handled_state
from bonny.core.objects import Item
from bonny.core.queue import Reason
from bonny.core.records import Action, KeyRecord, Records, Tombstone, applied_record, decide, is_paused, with_request
from bonny.kinds import Kind
from bonny.resource import PAUSED, RECONCILE_AT, Key
from tests.support.core import item, thing

W1, W2 = Key("default", "w1"), Key("default", "w2")
CONFIG_MAP = Kind("v1", "ConfigMap")
OURS, THEIRS = "example.com/ours", "example.com/theirs"


# --- what to do -------------------------------------------------------------------------------------------------------


def state(*, uid: str = "uid-w1", content: int = 2, finalizers: tuple[str, ...] = (), leaving: bool = False) -> Handled:
    deletion = "2026-01-01T00:00:00Z" if leaving else None
    return Handled(uid, content, None, None, finalizers, (), deletion)


NEWS: Final = frozenset({Reason.ADDED, Reason.CHANGED, Reason.DELETED})
TIMERS: Final = frozenset({Reason.REQUEUE, Reason.RESYNC})
OTHER_OBJECTS: Final = frozenset({Reason.CHILD, Reason.RELATED})
REASONS: Final = [frozenset(some) for count in range(8) for some in itertools.combinations(Reason, count)]

ADD, MODIFY, RECONCILE, FINALIZE = Action.ADD, Action.MODIFY, Action.RECONCILE, Action.FINALIZE

LIVE = (state(), state(finalizers=(THEIRS,)), state(finalizers=(OURS,)))
LEAVING = (state(leaving=True), state(leaving=True, finalizers=(THEIRS,)))
LEAVING_WITH_OURS = (state(leaving=True, finalizers=(OURS,)), state(leaving=True, finalizers=(THEIRS, OURS)))

Before = Literal["nothing", "another UID", "other content", "the same"]
BEFORE: Final[tuple[Before, ...]] = ("nothing", "another UID", "other content", "the same")

# What is done for news of the object alone, with a timer among the reasons, and with another object's change.
TABLE: Final[dict[tuple[str, Before, bool], tuple[Action | None, Action | None, Action | None]]] = {
    # the object,        reconciled before, stopped as it is:  news,    timer,     another object
    ("live", "nothing", False): (ADD, ADD, ADD),
    ("live", "another UID", False): (ADD, ADD, ADD),
    ("live", "other content", False): (MODIFY, MODIFY, MODIFY),
    ("live", "the same", False): (None, RECONCILE, RECONCILE),
    ("live", "nothing", True): (None, None, ADD),
    ("live", "another UID", True): (None, None, ADD),
    ("live", "other content", True): (None, None, MODIFY),
    ("live", "the same", True): (None, None, RECONCILE),
    ("leaving", "nothing", False): (None, None, None),
    ("leaving", "another UID", False): (None, None, None),
    ("leaving", "other content", False): (None, None, None),
    ("leaving", "the same", False): (None, None, None),
    ("leaving", "nothing", True): (None, None, None),
    ("leaving", "another UID", True): (None, None, None),
    ("leaving", "other content", True): (None, None, None),
    ("leaving", "the same", True): (None, None, None),
    ("leaving with ours", "nothing", False): (FINALIZE, FINALIZE, FINALIZE),
    ("leaving with ours", "another UID", False): (FINALIZE, FINALIZE, FINALIZE),
    ("leaving with ours", "other content", False): (FINALIZE, FINALIZE, FINALIZE),
    ("leaving with ours", "the same", False): (FINALIZE, FINALIZE, FINALIZE),
    ("leaving with ours", "nothing", True): (None, None, FINALIZE),
    ("leaving with ours", "another UID", True): (None, None, FINALIZE),
    ("leaving with ours", "other content", True): (None, None, FINALIZE),
    ("leaving with ours", "the same", True): (None, None, FINALIZE),
}
OBJECTS: Final = {"live": LIVE, "leaving": LEAVING, "leaving with ours": LEAVING_WITH_OURS}


def reconciled(before: Before, now: Handled) -> Handled | None:
    """What the record says of the last reconcile, when the object is in the state `now`."""
    match before:
        case "nothing":
            return None
        case "another UID":
            return state(uid="another", finalizers=now.finalizers)
        case "other content":
            return state(content=1, finalizers=now.finalizers)
        case "the same":
            return now


@pytest.mark.parametrize("row", TABLE, ids=lambda row: ", ".join(map(str, row)))
def test_what_is_done_follows_from_the_object_its_record_and_the_reasons(row: tuple[str, Before, bool]) -> None:
    objects, before, stopped = row
    for_news, for_a_timer, for_another_object = TABLE[row]
    for now, reasons in itertools.product(OBJECTS[objects], REASONS):
        expected = for_another_object if reasons & OTHER_OBJECTS else for_a_timer if reasons & TIMERS else for_news
        # Stopped as it was before says nothing of what it is now.
        for earlier in (now,) if stopped else (None, state(content=1), state(uid="another")):
            record: KeyRecord = KeyRecord(handled=reconciled(before, now), stopped=earlier)
            assert decide(now, record, reasons, finalizers=frozenset({OURS})) is expected
            if record == KeyRecord():
                assert decide(now, None, reasons, finalizers=frozenset({OURS})) is expected


def test_the_table_is_complete() -> None:
    assert set(TABLE) == set(itertools.product(OBJECTS, BEFORE, (False, True)))
    # A request is a change; the worker names it once that is decided.
    assert set(Reason) == NEWS | TIMERS | OTHER_OBJECTS | {Reason.REQUESTED}


states = st.builds(
    state,
    uid=st.sampled_from(["uid-w1", "another"]),
    content=st.sampled_from([1, 2]),
    finalizers=st.lists(st.sampled_from([OURS, THEIRS, "example.com/more"]), unique=True, max_size=2).map(tuple),
    leaving=st.booleans(),
)


@given(
    now=states,
    handled=st.none() | states,
    stopped=st.none() | states,
    reasons=st.frozensets(st.sampled_from(Reason)),
    finalizers=st.frozensets(st.sampled_from([OURS, "example.com/more"])),
    beside=st.booleans(),
)
def test_each_action_is_what_its_rule_says(
    *,
    now: Handled,
    handled: Handled | None,
    stopped: Handled | None,
    reasons: frozenset[Reason],
    finalizers: frozenset[str],
    beside: bool,
) -> None:
    record: KeyRecord = KeyRecord(handled=handled, stopped=stopped)
    if beside:  # what else is remembered decides nothing
        record.applied, record.tombstones = {}, {"uid-w1": Tombstone(item(), 1.0)}

    action = decide(now, record, reasons, finalizers=finalizers)

    leaving, waits_for_a_change = now.deletion is not None, now == stopped
    of_another_object = bool({"child", "related"} & reasons)
    if waits_for_a_change and not of_another_object:
        assert action is None, "it is stopped, and has not changed"
        return
    assert (action is FINALIZE) == (leaving and bool(finalizers & set(now.finalizers)))
    assert (action is ADD) == (not leaving and now.uid != (handled and handled.uid))
    known = handled is not None and handled.uid == now.uid and not leaving
    assert (action is MODIFY) == (known and handled != now)
    assert (action is RECONCILE) == (known and handled == now and bool(reasons - {"added", "changed", "deleted"}))
    assert action is not Action.DELETE, "that is about objects that are gone"


# --- tombstones -------------------------------------------------------------------------------------------------------


def owed(*buried: tuple[Item, float]) -> Records:
    """The deletions of these objects are owed, since these moments."""
    records: Records = Records()
    for known, since in buried:
        records.add_tombstone(known.key, known, now=since)
    return records


def test_a_tombstone_keeps_its_time_and_goes_when_its_delete_is_settled() -> None:
    old, new = item(uid="old"), item(uid="new")
    records = owed((old, 1.0), (new, 2.0), (old, 3.0))

    assert [(stone.item.meta.uid, stone.since) for stone in records.tombstones(W1)] == [("old", 1.0), ("new", 2.0)]
    for stone in records.tombstones(W1):
        records.remove_tombstone(W1, stone)
    assert records.tombstones(W1) == ()


@pytest.mark.parametrize("uid", ["uid-w1", "uid-other"])
def test_settling_one_deletion_leaves_those_of_other_uids(uid: str) -> None:
    records = owed((item(), 1.0), (item(uid="uid-other"), 2.0))

    for stone in records.tombstones(W1):
        if stone.item.meta.uid == uid:
            records.remove_tombstone(W1, stone)

    assert [stone.item.meta.uid for stone in records.tombstones(W1)] == list({"uid-w1", "uid-other"} - {uid})
    assert records.tombstones(W2) == ()


def test_an_object_that_is_gone_again_while_its_deletion_is_settled_is_still_owed_one() -> None:
    """Regression: what was settled was "it still exists", and the deletion that followed was forgotten with it."""
    records = owed((item(version=1), 1.0))
    (settled,) = records.tombstones(W1)
    records.add_tombstone(W1, item(version=3), now=2.0)

    records.remove_tombstone(W1, settled)

    assert [stone.item.version for stone in records.tombstones(W1)] == [3]


def test_a_later_tombstone_of_a_uid_keeps_the_time_and_shows_the_newer_state() -> None:
    (stone,) = owed((item(version=1), 1.0), (item(version=2), 9.0)).tombstones(W1)

    assert (stone.since, stone.item.version) == (1.0, 2)


def test_a_standby_drops_the_deletions_before_a_moment_and_names_the_keys_that_have_none_left() -> None:
    records = owed((item(uid="old"), 1.0), (item(uid="new"), 5.0), (item("w2"), 2.0), (item("w3"), 5.0))

    assert records.remove_tombstones_before(5.0) == [W2]

    assert [stone.item.meta.uid for stone in records.tombstones(W1)] == ["new"]
    assert records.remove_tombstones_before(5.0) == [], "each key is named once"


def test_the_uids_that_are_known_as_deleted_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records_module, "REMEMBERED_DELETIONS", 10)
    records: Records = Records()
    for number in range(100):
        records.mark_deleted(f"uid-{number}")

    assert [number for number in range(100) if records.is_deleted(f"uid-{number}")] == list(range(90, 100))


# --- what is forgotten, and when --------------------------------------------------------------------------------------


def filled() -> Records:
    """Of W1 everything is remembered."""
    records = owed((item(uid="old"), 1.0))
    record = records.of(W1)
    record.handled = record.stopped = handled_state(item(), with_status=False)
    record.applied = {(CONFIG_MAP, W1): applied_record({}, thing(), {})}
    records.mark_deleted("gone")
    return records


def test_forgetting_an_object_leaves_its_deletion_owed_and_nothing_else() -> None:
    records = filled()
    (stone,) = records.tombstones(W1)

    records.forget(W1)
    assert dict(records.items()) == {W1: KeyRecord(tombstones={"old": stone})}

    records.remove_tombstone(W1, stone)
    records.forget(W1)
    assert len(records) == 0


def test_forgetting_an_unknown_key_makes_no_record() -> None:
    records: Records = Records()

    records.forget(W1)

    assert (len(records), records.get(W1), records.tombstones(W1)) == (0, None, ())


def test_in_a_new_term_each_object_counts_as_not_yet_reconciled_and_deletions_are_still_owed() -> None:
    records = filled()

    records.forget_reconciles()

    record = records.of(W1)
    assert (record.handled, record.stopped, record.applied) == (None, None, None)
    assert (len(records.tombstones(W1)), records.epoch) == (1, 0)
    assert records.is_deleted("gone")


def test_after_a_restore_deletions_are_still_owed_and_no_reconcile_is_remembered() -> None:
    records = filled()

    records.forget_versions()

    record = records.of(W1)
    assert (record.handled, record.stopped, record.applied) == (None, None, None)
    assert len(records.tombstones(W1)) == 1
    assert not records.is_deleted("gone"), "the backup may have it"
    assert records.epoch == 1


def test_an_epoch_forgets_what_terminal_stopped_and_keeps_what_was_handled() -> None:
    records = filled()

    records.begin_epoch()

    record = records.of(W1)
    assert (records.epoch, record.stopped) == (1, None)
    assert record.handled is not None
    assert record.applied is not None


# --- children as they were applied ------------------------------------------------------------------------------------


def test_an_applied_record_tells_what_was_sent_from_what_was_stored() -> None:
    live = thing(version=7)
    sent, stored = {"cpu": "1000m"}, {"cpu": "1"}

    record = applied_record(sent, live, stored)

    assert (record.uid, record.version, record.wanted != record.stored) == ("uid-w1", "7", True)
    assert record == applied_record(dict(sent), thing(version=7), dict(stored))


# --- annotations that steer -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", Action)
@pytest.mark.parametrize(
    ("annotations", "rests"),
    [
        (None, False),
        ({}, False),
        ({PAUSED: "false"}, False),
        ({PAUSED: ""}, True),
        ({PAUSED: "true"}, True),
        ({PAUSED: "False"}, True),
        ({PAUSED: "x" * 200_000}, True),
        ({"bonny.dev/pause": "true"}, False),
    ],
)
def test_a_pause_holds_up_everything_but_a_deletion(
    annotations: dict[str, str] | None, rests: bool, action: Action
) -> None:
    assert is_paused(annotations, action) == (rests and action not in (Action.FINALIZE, Action.DELETE))


@pytest.mark.parametrize(
    ("before", "now", "reason", "requested"),
    [
        (None, None, Reason.CHANGED, False),
        ({}, None, Reason.CHANGED, False),
        ({}, {RECONCILE_AT: "1"}, Reason.CHANGED, True),
        ({RECONCILE_AT: "1"}, {RECONCILE_AT: "2"}, Reason.CHANGED, True),
        ({RECONCILE_AT: "1"}, {RECONCILE_AT: ""}, Reason.CHANGED, True),
        ({RECONCILE_AT: "1"}, {RECONCILE_AT: "1"}, Reason.CHILD, False),
        ({RECONCILE_AT: "1"}, {}, Reason.CHANGED, False),
        # Never handled: after a restart, or while each try fails.
        ("never", {RECONCILE_AT: "1"}, Reason.ADDED, False),
        ("never", {RECONCILE_AT: "1"}, Reason.CHANGED, True),
        ("never", {}, Reason.CHANGED, False),
    ],
)
def test_a_new_value_is_a_request(before: Any, now: dict[str, str] | None, reason: Reason, requested: bool) -> None:
    handled = None if before == "never" else msgspec.structs.replace(state(), annotations=before)
    found = with_request(
        frozenset({reason}), msgspec.structs.replace(state(), annotations=now), KeyRecord(handled=handled)
    )
    assert found == frozenset({reason, Reason.REQUESTED} if requested else {reason})
