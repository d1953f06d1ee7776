"""Own writes: recognised in whichever order events and answers come, and no foreign change is swallowed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bonny.core.objects import Item, version_number
from bonny.core.own_writes import BARRIER_SECONDS, OwnWrites
from bonny.core.queue import Queue, Reason
from bonny.core.store import Delta, Store
from bonny.core.watch import Put
from bonny.resource import Key
from tests.support.core import item

W1, W2 = Key("default", "w1"), Key("default", "w2")
PODS, MAPS = "pods", "configmaps"


class Still:
    """A stream that shows what a test puts into its store."""

    def __init__(self) -> None:
        self.store = Store()
        self.version = 0


class Writes:
    """The writes of the key W1 to two kinds, each with a stream."""

    def __init__(self) -> None:
        self.streams = {PODS: Still(), MAPS: Still()}
        self.queue: Queue[Key] = Queue()
        self.woken: list[Key | None] = []
        """The key that was ready when a worker was woken."""

        self.counted: list[Any] = []
        """What counted as foreign when the last write was answered."""

        self.of_all = OwnWrites(
            self.queue,
            lambda kind, *_: self.streams[cast("Any", kind)],
            lambda _, reason: self.counted.append(reason),
            wake=lambda: self.woken.append(None if (work := self.queue.take(now=0.0)) is None else work.key),
        )

    def begin(self, kind: str = PODS) -> None:
        self.of_all.begin_write(owner=W1)

    def end(self, kind: str, version: str | None, *, at: int) -> list[Any]:
        """The write is answered while the stream is `at` this version; returns what counts as foreign by that."""
        self.streams[kind].version = at
        self.counted.clear()
        self.of_all.end_write(cast("Any", kind), W1, version, owner=W1)
        return list(self.counted)

    def is_own(self, kind: str, version: str, reason: Any) -> bool:
        """Whether the event of this version counts as own."""
        return self.of_all.is_own(W1, self.streams[kind], event(version), reason)

    def passes(self, kind: str, version: int) -> None:
        """The stream is at this version now."""
        self.streams[kind].version = version
        self.of_all.advanced(self.streams[kind])

    def deletes(self) -> None:
        """W1 deletes the pod of its own name."""
        self.streams[PODS].store.apply(Put(item(), live=True))
        self.of_all.begin_deletion(cast("Any", PODS), W1, "uid-w1", owner=W1)

    @property
    def awaited(self) -> dict[str, int]:
        names = {stream: kind for kind, stream in self.streams.items()}
        waiting = self.of_all._keys[W1].awaited if W1 in self.of_all._keys else {}
        return {names[stream]: version for stream, version in waiting.items()}  # type: ignore[index]

    @property
    def waits(self) -> bool:
        return W1 in self.of_all._keys and self.of_all._keys[W1].waits

    @property
    def over(self) -> bool:
        """Whether nothing is remembered."""
        return not (self.of_all._keys or any(self.of_all._awaited.values()) or self.of_all._followers)


def event(version: str) -> Delta:
    return Delta(W1, item(), item(version=version), live=True)


def wrote(*versions: str, at: int = 0) -> Writes:
    """A key whose writes to pods made these versions."""
    writes = Writes()
    for version in versions:
        writes.begin()
        writes.end(PODS, version, at=at)
    return writes


def shown(writes: Writes, *versions: str, stream: str = PODS) -> list[bool]:
    """Whether the events of these versions count as own."""
    return [writes.is_own(stream, version, Reason.CHILD) for version in versions]


# --- the rules of the module ------------------------------------------------------------------------------------------


def test_an_event_is_own_if_a_write_of_this_key_made_exactly_its_version_and_comes_after_the_answer() -> None:
    writes = wrote("5")

    assert shown(writes, "4", "5", "5", "6") == [False, True, False, False], "once, and none beside it"


def test_an_event_is_own_if_a_write_of_this_key_made_exactly_its_version_and_comes_before_the_answer() -> None:
    writes = Writes()
    writes.begin()
    assert shown(writes, "5") == [True]
    assert writes.end(PODS, "5", at=5) == []

    assert shown(writes, "5") == [False]
    assert writes.over


def test_while_a_write_is_under_way_each_event_is_held_and_the_foreign_ones_count_when_the_last_is_answered() -> None:
    """A third party's change in front of, between and behind two writes."""
    writes = Writes()
    writes.begin()
    writes.begin()
    reasons = {"4": Reason.CHILD, "5": Reason.CHILD, "6": Reason.CHANGED, "7": Reason.CHILD, "8": Reason.RELATED}
    assert all(writes.is_own(PODS, version, reason) for version, reason in reasons.items())

    assert writes.end(PODS, "7", at=8) == []
    assert writes.end(PODS, "5", at=8) == [Reason.CHILD, Reason.CHANGED, Reason.RELATED]
    assert writes.over


def test_the_key_waits_for_each_stream_until_that_is_at_the_newest_version_that_the_key_wrote_there() -> None:
    writes = wrote("5", "7", "6")
    writes.begin(MAPS)
    writes.end(MAPS, "3", at=2)
    assert writes.awaited == {PODS: 7, MAPS: 3}

    writes.passes(PODS, 7)
    assert writes.waits
    writes.passes(MAPS, 3)
    assert not writes.waits
    assert writes.over


def test_the_key_waits_for_each_deletion() -> None:
    writes = Writes()
    writes.deletes()

    assert writes.waits
    assert not writes.over


def test_a_key_that_waits_is_parked_for_at_most_5_s_and_its_writes_are_foreign_if_they_are_shown_later() -> None:
    writes = wrote("5")
    writes.queue.add(W1, Reason.CHANGED, now=0.0)
    assert writes.queue.take(now=0.0) is not None
    assert writes.of_all.park(W1, now=0.0)
    assert writes.queue.take(now=BARRIER_SECONDS - 0.1) is None
    assert writes.queue.take(now=BARRIER_SECONDS) is not None
    assert not writes.of_all.park(W1, now=BARRIER_SECONDS)

    assert (writes.of_all.waits, writes.of_all.missed) == (1, 1)
    assert shown(writes, "5") == [False]
    assert writes.over


def test_a_worker_is_woken_once_a_parked_key_is_ready_and_not_before() -> None:
    writes = wrote("5", "7")
    writes.queue.add(W1, Reason.CHANGED, now=0.0)
    assert writes.queue.take(now=0.0) is not None
    assert writes.of_all.park(W1, now=0.0)

    writes.passes(PODS, 6)
    assert writes.woken == []
    writes.passes(PODS, 7)
    assert writes.woken == [W1]


def test_a_key_follows_each_name_that_it_wants_or_deletes_whichever_object_has_it() -> None:
    writes = Writes()
    pods, maps = (writes.streams[kind] for kind in (PODS, MAPS))
    writes.deletes()
    writes.of_all.want([(cast("Any", MAPS), W2)], owner=W1)

    anew = Delta(W2, item("w2", uid="another"), None, live=True)
    assert writes.of_all.followers(maps, anew) == {W1}
    assert writes.of_all.followers(pods, anew) == set()
    assert writes.of_all.followers(pods, event("5")) == {W1}

    writes.of_all.want([], owner=W1)
    assert writes.of_all.followers(maps, anew) == set()
    assert writes.of_all.followers(pods, event("5")) == {W1}
    writes.of_all.cancel_deletion(cast("Any", PODS), W1, "uid-w1", owner=W1)
    assert writes.over


# --- one stream and another -------------------------------------------------------------------------------------------


def test_a_version_on_one_stream_says_nothing_of_the_same_version_on_another() -> None:
    """Versions of two resources come from one counter on some servers, and from two on others."""
    writes = wrote("5")

    assert shown(writes, "5", stream=MAPS) == [False]
    assert shown(writes, "5") == [True]


def test_an_event_of_another_stream_that_came_while_a_write_was_under_way_counts() -> None:
    writes = Writes()
    writes.begin()
    assert shown(writes, "5", stream=MAPS) == [True]

    assert writes.end(PODS, "5", at=4) == [Reason.CHILD]
    assert shown(writes, "5") == [True]


# --- answers that make no version, and versions that no event shows ---------------------------------------------------


def test_a_failed_write_leaves_nothing_behind() -> None:
    writes = Writes()
    writes.begin()
    assert shown(writes, "5") == [True]

    assert writes.end(PODS, None, at=5) == [Reason.CHILD]
    assert writes.over


def test_the_answer_to_a_write_that_changed_nothing_claims_no_event_that_was_shown() -> None:
    """Regression: such versions were remembered for ever, one for each object that was applied in vain."""
    assert wrote("5", at=5).over


def test_a_write_that_is_answered_after_its_list_is_not_waited_for() -> None:
    assert wrote("5", at=6).over


def test_writes_that_came_by_a_list_are_not_waited_for_any_longer() -> None:
    """Regression: they were remembered until their object changed again, and for ever if it was deleted."""
    writes = wrote("5", "7")
    writes.begin(MAPS)
    writes.end(MAPS, "9", at=2)

    writes.passes(PODS, 7)

    assert writes.awaited == {MAPS: 9}
    assert shown(writes, "5", "7") == [False, False]
    assert shown(writes, "9", stream=MAPS) == [True]


def test_versions_that_are_no_numbers_are_recognised_all_the_same_and_never_waited_for() -> None:
    writes = wrote("five")

    assert not writes.waits
    assert shown(writes, "four", "five", "five") == [False, True, False]
    assert writes.over


def test_a_version_that_is_no_number_is_recognised_before_its_answer() -> None:
    writes = Writes()
    writes.begin()
    assert shown(writes, "four", "five") == [True, True]

    assert writes.end(PODS, "five", at=0) == [Reason.CHILD]
    assert writes.over


# --- a server that was restored ---------------------------------------------------------------------------------------


def test_after_a_restore_only_what_is_under_way_is_known() -> None:
    """Versions mean something else now; the answer to a write under way does, too."""
    writes = wrote("500")
    writes.deletes()
    writes.begin()

    writes.of_all.forget_all_writes()

    assert not writes.waits
    assert shown(writes, "20") == [True], "held, until the answer says whose it is"
    assert writes.end(PODS, "20", at=20) == []
    assert shown(writes, "500") == [False]
    assert writes.over


# --- deletions --------------------------------------------------------------------------------------------------------


GOING = item(version=6, deleting=True)


@pytest.mark.parametrize(
    ("old", "new", "own"),
    [
        pytest.param(item(), None, True, id="gone"),
        pytest.param(item(), GOING, True, id="under deletion from now on"),
        pytest.param(item(), item(uid="another"), True, id="replaced by another one"),
        pytest.param(GOING, None, True, id="gone after a while"),
        pytest.param(item(), item(version=6), False, id="changed by somebody meanwhile"),
        pytest.param(GOING, item(version=7, deleting=True), False, id="changed while it goes"),
        pytest.param(None, item(), False, id="it was not there"),
        pytest.param(item(uid="another"), None, False, id="another one of its name"),
    ],
)
def test_a_deletion_is_own_when_it_ends_the_very_object_that_the_key_deleted(
    old: Item | None, new: Item | None, own: bool
) -> None:
    writes = Writes()
    writes.deletes()

    pods, maps = (writes.streams[kind] for kind in (PODS, MAPS))
    assert not writes.of_all.is_own(W1, maps, Delta(W1, old, new, live=True), Reason.CHILD)
    assert not writes.of_all.is_own(W1, pods, Delta(W2, old, new, live=True), Reason.CHILD)
    assert writes.of_all.is_own(W1, pods, Delta(W1, old, new, live=True), Reason.CHILD) is own
    assert writes.over is own


# --- all of it, in any order ------------------------------------------------------------------------------------------


class Server:
    """Two resources with a stream each. A write is begun, committed, shown and answered; anything may come between."""

    def __init__(self, data: st.DataObject, names: Mapping[str, str]) -> None:
        self.data = data
        self.names = names
        """By stream: what its versions look like."""

        self.writes = Writes()
        self.committed: dict[str, list[str]] = {PODS: [], MAPS: []}
        """The versions of each stream, in their order."""

        self.shown = {PODS: 0, MAPS: 0}
        """How many of them the stream has shown."""

        self.listed: set[tuple[str, str]] = set()
        self.begun: list[str] = []
        """The streams of writes that the server has not committed."""

        self.answers: list[tuple[str, str | None]] = []
        self.own: set[tuple[str, str]] = set()
        """Committed by the key, and answered with the version or yet to be answered."""

        self.newest = {PODS: 0, MAPS: 0}
        """By stream: the newest version in an answer."""

        self.counted: list[tuple[str, str]] = []
        """Events that counted as foreign."""

    def at(self, stream: str) -> int:
        shown = self.committed[stream][: self.shown[stream]]
        return version_number(shown[-1]) if shown else 0

    def choices(self) -> list[str]:
        behind = any(self.shown[stream] < len(versions) for stream, versions in self.committed.items())
        possible = {
            "own commit": self.begun,
            "fail": self.begun,
            "show": behind,
            "list": behind,
            "answer": self.answers,
        }
        return [action for action, now in possible.items() if now]

    def commit(self, stream: str) -> str:
        version = self.names[stream].format(len(self.committed[stream]) + 1)
        self.committed[stream].append(version)
        return version

    def happens(self, action: str) -> None:
        draw = self.data.draw
        match action:
            case "begin":
                self.begun.append(draw(st.sampled_from([PODS, MAPS])))
                self.writes.begin(self.begun[-1])
            case "foreign commit":
                self.commit(draw(st.sampled_from([PODS, MAPS])))
            case "own commit":
                stream = self.begun.pop(draw(st.integers(0, len(self.begun) - 1)))
                version = self.commit(stream)
                # The answer to a committed write can be lost, too.
                if draw(st.booleans()) or draw(st.booleans()):
                    self.own.add((stream, version))
                    self.answers.append((stream, version))
                else:
                    self.answers.append((stream, None))
            case "fail":
                self.answers.append((self.begun.pop(), None))
            case "answer":
                stream, answer = self.answers.pop(draw(st.integers(0, len(self.answers) - 1)))
                self.counted += self.writes.end(stream, answer, at=self.at(stream))
                self.newest[stream] = max(self.newest[stream], version_number(answer or ""))
            case _:
                self.stream_moves(listed=action == "list")

    def stream_moves(self, *, listed: bool) -> None:
        late = [stream for stream, versions in self.committed.items() if self.shown[stream] < len(versions)]
        stream = self.data.draw(st.sampled_from(late))
        if listed:
            self.listed |= {(stream, version) for version in self.committed[stream][self.shown[stream] :]}
            self.shown[stream] = len(self.committed[stream])
        else:
            version = self.committed[stream][self.shown[stream]]
            self.shown[stream] += 1
            if not self.writes.is_own(stream, version, (stream, version)):
                self.counted.append((stream, version))
        self.writes.passes(stream, self.at(stream))

    @property
    def waits(self) -> bool:
        return any(newest > self.at(stream) for stream, newest in self.newest.items())


@pytest.mark.parametrize("names", [{PODS: "{}", MAPS: "{}"}, {PODS: "{}", MAPS: "v{}"}], ids=["numbers", "no numbers"])
@given(data=st.data(), actions=st.integers(1, 30))
def test_every_foreign_change_is_told_and_no_own_one_in_whichever_order_events_and_answers_come(
    names: Mapping[str, str], data: st.DataObject, actions: int
) -> None:
    """The server commits writes in some order; events follow the commits in order, unless a list replaces them; each
    answer comes at any time, or says nothing of what became of the write."""
    server = Server(data, names)
    for _ in range(actions):
        server.happens(data.draw(st.sampled_from(["begin", "foreign commit", *server.choices()])))
        assert server.writes.waits is server.waits
    while choices := server.choices():
        server.happens(data.draw(st.sampled_from(choices)))
        assert server.writes.waits is server.waits

    everything = {(stream, version) for stream, versions in server.committed.items() for version in versions}
    assert sorted(server.counted) == sorted(everything - server.own - server.listed)
    assert not server.writes.waits
    # A list says nothing of versions without an order: these are forgotten when the key is taken again.
    assert server.writes.over or any(names[stream] != "{}" for stream, _ in server.listed & server.own)
