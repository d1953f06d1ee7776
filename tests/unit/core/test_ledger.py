"""What the recognition of own writes, barriers and applied records must not get wrong, case by case.

The rules as properties, over any order of events and answers: `test_ledger_rules`.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bonny.core.ledger import REMEMBERED_WRITES, SLACK, Barriers, Ledger, OwnWrites, applied_record, handled_state
from bonny.core.objects import decode_item, decode_page
from bonny.resource import Key
from tests.support.core import item, thing

W1, W2 = Key("default", "w1"), Key("default", "w2")


# --- own writes -------------------------------------------------------------------------------------------------------


def test_an_event_after_the_answer_is_recognised_once() -> None:
    writes = OwnWrites()
    writes.begin(W1)
    assert writes.end(W1, "5") == []

    assert [writes.is_own(W1, "5"), writes.is_own(W1, "5")] == [True, False]
    assert len(writes) == 0


def test_an_event_before_the_answer_is_recognised_once() -> None:
    writes = OwnWrites()
    writes.begin(W1)
    assert writes.is_own(W1, "5")
    assert writes.end(W1, "5") == []

    assert not writes.is_own(W1, "5")


def test_what_came_while_a_write_was_under_way_is_told_when_it_turns_out_foreign() -> None:
    """A third party's change before, between and behind two writes of ours."""
    writes = OwnWrites()
    writes.begin(W1)
    writes.begin(W1)
    assert all(writes.is_own(W1, version) for version in ("4", "5", "6", "7", "8"))

    assert writes.end(W1, "7") == []
    assert writes.end(W1, "5") == ["4", "6", "8"]


def test_a_write_of_one_object_says_nothing_of_another() -> None:
    writes = OwnWrites()
    writes.begin(W1)

    assert not writes.is_own(W2, "5")
    writes.end(W1, "6")
    assert not writes.is_own(W2, "6")


def test_the_answer_to_a_write_that_changed_nothing_claims_no_event_that_was_shown() -> None:
    """Regression: such versions were remembered for ever, one for each object that was applied in vain."""
    writes = OwnWrites()
    assert not writes.is_own(W1, "5")
    writes.begin(W1)
    writes.end(W1, "5")

    assert len(writes) == 0


def test_a_write_whose_event_never_comes_is_forgotten_with_the_next_one() -> None:
    writes = OwnWrites()
    writes.begin(W1)
    writes.end(W1, "5")

    assert not writes.is_own(W1, "6")
    assert len(writes) == 0


def test_versions_that_are_no_numbers_are_recognised_all_the_same() -> None:
    writes = OwnWrites()
    writes.begin(W1)
    writes.end(W1, "five")

    assert [writes.is_own(W1, version) for version in ("four", "five", "five")] == [False, True, False]


def test_writes_that_no_stream_ever_shows_are_bounded() -> None:
    writes = OwnWrites()
    for version in range(100):
        writes.begin(W1)
        writes.end(W1, str(version + 1))

    assert len(writes._writes[W1].versions) == 8


def test_the_writes_of_an_object_that_is_gone_are_forgotten() -> None:
    """Regression: where a list showed a write instead of an event, it was remembered for ever."""
    writes = OwnWrites()
    for name in ("job-1", "job-2", "job-3"):
        key = Key("default", name)
        writes.begin(key)
        writes.end(key, "5")
        writes.drop(key)

    assert len(writes) == 0


def test_a_write_that_is_under_way_is_not_forgotten_with_its_object() -> None:
    """It may be the one that creates the object anew."""
    writes = OwnWrites()
    writes.begin(W1)

    writes.drop(W1)

    writes.end(W1, "6")
    assert writes.is_own(W1, "6")


def test_writes_that_came_by_a_list_are_not_waited_for_any_longer() -> None:
    """Regression: they were remembered until their object changed again, and for ever if it was deleted."""
    writes = OwnWrites()
    for key, version in ((W1, "5"), (W2, "7")):
        writes.begin(key)
        writes.end(key, version)

    writes.passed(at=6)

    assert len(writes) == 1
    assert writes.is_own(W2, "7")
    assert len(writes) == 0


def test_a_write_that_is_answered_after_its_list_is_not_waited_for_either() -> None:
    writes = OwnWrites()
    writes.begin(W1)
    writes.passed(at=6)
    assert len(writes) == 1, "it is still under way"

    writes.end(W1, "5")
    assert len(writes) == 0


def test_after_a_restore_only_what_is_under_way_is_known() -> None:
    """Versions mean something else now; the answer to a write under way does, too."""
    writes = OwnWrites()
    writes.begin(W1)
    writes.end(W1, "500")
    writes.begin(W2)
    assert writes.is_own(W2, "501")

    writes.forget_versions()

    assert len(writes) == 1
    assert writes.end(W2, "20") == []
    assert writes.is_own(W2, "20")
    assert len(writes) == 0


@given(data=st.data(), count=st.integers(1, 12))
def test_of_several_objects_on_one_stream_each_has_its_own_writes(data: st.DataObject, count: int) -> None:
    """Writes also fail, and are answered before or behind any event, of whichever object."""
    writes = OwnWrites()
    told: list[int] = []
    foreign: list[int] = []
    pending: list[tuple[Key, str | None]] = []
    for version in range(1, count + 1):
        key = data.draw(st.sampled_from([W1, W2]))
        match data.draw(st.sampled_from(["own", "foreign", "failed"])):
            case "own":
                writes.begin(key)
                pending.append((key, str(version)))
            case "failed":
                writes.begin(key)
                pending.append((key, None))
                foreign.append(version)
            case _:
                foreign.append(version)
        early, pending = pending, []
        if data.draw(st.booleans()):
            early, pending = [], early
        behind = data.draw(st.booleans())
        for answer in [] if behind else early:
            told += map(int, writes.end(*answer))
        if not writes.is_own(key, str(version)):
            told.append(version)
        for answer in early if behind else []:
            told += map(int, writes.end(*answer))
    for answer in pending:
        told += map(int, writes.end(*answer))

    assert sorted(told) == foreign
    assert len(writes) == 0


# --- barriers ---------------------------------------------------------------------------------------------------------


def test_a_key_that_wrote_again_waits_for_its_newest_write() -> None:
    barriers = Barriers()
    barriers.require(W1, 5)
    barriers.require(W1, 7)
    barriers.require(W1, 6)

    assert barriers.met(at=6) == []
    assert barriers.blocks(W1, at=6)
    assert barriers.met(at=7) == [W1]
    assert not barriers.blocks(W1, at=0)


def test_a_key_whose_time_is_over_is_not_told_later() -> None:
    barriers = Barriers()
    barriers.require(W1, 5)
    barriers.drop(W1)

    assert (len(barriers), barriers.met(at=9), barriers.blocks(W1, at=0)) == (0, [], False)


def test_a_key_that_waits_again_after_its_time_was_over_is_told_once() -> None:
    barriers = Barriers()
    barriers.require(W1, 5)
    barriers.drop(W1)
    barriers.require(W1, 5)

    assert barriers.met(at=5) == [W1]


def test_a_stream_that_never_moves_does_not_collect_barriers() -> None:
    """Regression: each write of a controller whose children may not be watched left one behind."""
    barriers = Barriers()
    barriers.require(W2, 10_000)
    for version in range(1, 1_000):
        barriers.require(W1, version)
        barriers.drop(W1)

    assert len(barriers._order) <= 2 + SLACK
    assert barriers.met(at=10_000) == [W2]


@pytest.mark.parametrize("drops", [False, True])
def test_keys_that_went_on_too_early_do_not_collect_places_while_their_stream_is_refused(drops: bool) -> None:
    """Regression: `late` barriers, whose keys are never dropped, kept one place for each write."""
    barriers = Barriers()
    for version in range(1, 10_000):
        key = Key("default", f"w{version % 10}")
        if drops and version % 3 == 0:
            barriers.drop(key)
        barriers.require(key, version)
        assert len(barriers._order) <= 2 * len(barriers) + SLACK + 1

    wanted = {version for version, _ in barriers._order} & set(barriers._wanted.values())
    assert sorted(wanted) == sorted(barriers._wanted.values())
    assert len(barriers.met(at=10_000)) == 10


@pytest.mark.parametrize("shown", [0, 3])
def test_own_writes_do_not_collect_places_while_their_stream_is_refused(shown: int) -> None:
    """Regression: 50,000 writes to ten keys left 50,000 places."""
    writes = OwnWrites()
    for version in range(1, 10_000):
        key = Key("default", f"w{version % 10}")
        writes.begin(key)
        writes.end(key, str(version))
        assert len(writes._order) <= 2 * REMEMBERED_WRITES * len(writes) + SLACK + 1
        if shown and version % shown == 0:
            writes.is_own(key, str(version))

    writes.passed(at=10_000)
    assert (len(writes), writes._order) == (0, [])


# --- handled states, applied records, tombstones ---------------------------------------------------------------------


def test_the_same_object_from_a_list_and_from_a_watch_is_one_state() -> None:
    """Regression: lists leave out apiVersion and kind, and each relist made ConfigMaps look changed."""
    listed = handled_state(item(data={"a": "1"}), with_status=False)
    watched = handled_state(item(data={"a": "1"}, apiVersion="v1", kind="ConfigMap"), with_status=False)

    assert listed == watched


def test_an_equal_generation_hides_other_content_unless_it_is_not_trusted() -> None:
    """As in a history that was rewritten by a restore from a backup."""
    old, new = item(version=5, generation=2, spec=5), item(version=9, generation=2, spec=7)

    assert handled_state(old, with_status=False) == handled_state(new, with_status=False)
    states = [handled_state(one, with_status=False, trust_generation=False) for one in (old, new)]
    assert states[0].content != states[1].content


@pytest.mark.parametrize("uid", ["uid-w1", "uid-other"])
def test_settling_one_deletion_leaves_those_of_other_uids(uid: str) -> None:
    ledger = Ledger()
    ledger.add_tombstone(item().key, item(), now=1.0)
    ledger.add_tombstone(item(uid="uid-other").key, item(uid="uid-other"), now=2.0)

    for stone in ledger.tombstones(W1):
        if stone.item.meta.uid == uid:
            ledger.remove_tombstone(W1, stone)

    assert [stone.item.meta.uid for stone in ledger.tombstones(W1)] == list({"uid-w1", "uid-other"} - {uid})
    assert ledger.tombstones(W2) == ()


def test_an_object_that_is_buried_while_its_deletion_is_settled_stays_buried() -> None:
    """Regression: what was settled was "it still exists", and the deletion that followed was forgotten with it."""
    ledger = Ledger()
    ledger.add_tombstone(item(version=1).key, item(version=1), now=1.0)
    (settled,) = ledger.tombstones(W1)
    ledger.add_tombstone(item(version=3).key, item(version=3), now=2.0)

    ledger.remove_tombstone(W1, settled)

    assert [stone.item.version for stone in ledger.tombstones(W1)] == [3]


def test_an_object_that_is_buried_again_keeps_its_time_and_shows_its_newer_state() -> None:
    ledger = Ledger()
    ledger.add_tombstone(item(version=1).key, item(version=1), now=1.0)
    ledger.add_tombstone(item(version=2).key, item(version=2), now=9.0)

    (stone,) = ledger.tombstones(W1)
    assert (stone.since, stone.item.version) == (1.0, 2)


def test_forgetting_an_object_leaves_its_deletion_owed() -> None:
    ledger = Ledger()
    ledger.handled[W1] = handled_state(item(), with_status=False)
    ledger.applied_records[W1] = {}
    ledger.add_tombstone(item().key, item(), now=1.0)

    ledger.drop(W1)

    assert (ledger.handled, ledger.applied_records, len(ledger.tombstones(W1))) == ({}, {}, 1)


def test_after_a_restore_deletions_are_still_owed() -> None:
    ledger = Ledger()
    ledger.handled[W1] = handled_state(item(), with_status=False)
    ledger.add_tombstone(item().key, item(), now=1.0)

    ledger.forget_versions()

    assert (ledger.handled, len(ledger.tombstones(W1))) == ({}, 1)


def test_a_witness_tells_what_was_sent_from_what_was_stored() -> None:
    live = thing(version=7)
    sent, stored = {"cpu": "1000m"}, {"cpu": "1"}

    record = applied_record(sent, live, stored)

    assert (record.uid, record.version, record.wanted != record.stored) == ("uid-w1", "7", True)
    assert record == applied_record(dict(sent), thing(version=7), dict(stored))


def test_the_order_of_labels_is_no_change() -> None:
    ab, ba = (item(labels=labels) for labels in ({"a": "1", "b": "2"}, {"b": "2", "a": "1"}))

    assert handled_state(ab, with_status=True) == handled_state(ba, with_status=True)
    assert decode_item(ab.raw) == ab


def test_of_metadata_alone_any_new_version_may_be_new_content() -> None:
    """A ConfigMap has no generation, and its data is not there to be compared."""
    old, new = (handled_state(item(version=version), with_status=False, metadata_only=True) for version in (5, 6))
    assert old != new


def test_of_metadata_alone_a_generation_says_whether_there_is_something_to_do() -> None:
    old, new = (
        handled_state(item(version=version, generation=2), with_status=False, metadata_only=True) for version in (5, 6)
    )
    assert old == new


def test_of_metadata_alone_a_generation_says_nothing_of_the_status() -> None:
    """Regression: with `on_status`, changes of the status of such a kind were never handled."""
    old, new = (
        handled_state(item(version=version, generation=2), with_status=True, metadata_only=True) for version in (5, 6)
    )
    assert old != new


DEEP = b'{"a":' * 50_000 + b"1" + b"}" * 50_000


@pytest.mark.parametrize("with_status", [False, True])
@pytest.mark.parametrize("generation", [b"", b',"generation":3'], ids=["no generation", "generation"])
@pytest.mark.parametrize("content", [DEEP, rb'"\ud800"', b'"\xff"', b"1e999"], ids=["deep", "half", "bytes", "number"])
def test_what_cannot_be_decoded_is_another_state_with_each_version(
    content: bytes, generation: bytes, with_status: bool
) -> None:
    """Regression: the stream that showed a change of it fell, and every object of its kind was handled again."""
    head = b'{"metadata":{"name":"w1","uid":"u"' + generation + b',"resourceVersion":"'
    items = b",".join(head + version + b'"},"status":' + content + b"}" for version in (b"5", b"5", b"6"))
    shown = decode_page(b'{"metadata":{"resourceVersion":"6"},"items":[' + items + b"]}").items
    old, again, new = (handled_state(known, with_status=with_status) for known in shown)

    assert old == again
    if content is DEEP:
        assert (old == new) is (bool(generation) and not with_status)
