"""Rows W: what a list or a watch may do to an operator (docs/reliability.md)."""

from __future__ import annotations

import shutil
import signal
import time
from itertools import count
from pathlib import Path
from typing import TypeAlias

import pytest

from bonny.core.watch import WATCHES_AT_ONCE
from bonny.resource import Resource
from bonny_dev.crd.definition import crds
from bonny_dev.sandbox import Sandbox
from bonny_dev.testing.faults import Cut, Effect, Fault, Hold, Inject, Respond, Stall
from tests.conftest import Start
from tests.faults.scene import (
    BACKOFF_SECONDS,
    GONE,
    GONE_EVENT,
    GROUP,
    HTML,
    LONG_WATCH_SECONDS,
    SEEN_SECONDS,
    SLOW,
    WIDGETS,
    Predicate,
    Scene,
    behind_a_proxy,
    compact,
    list_of_widgets,
    of_widgets,
    stopped,
    watch_of_widgets,
    widget,
)
from tests.support.handwritten import operator

# Watches of a second end themselves after that, and are given up after another one; then comes the longest first wait.
# The rest is for a slow machine.
SHORT_WATCH_SECONDS = 1.0
# The API server ends watches after so long; silence for longer than this is deafness.
POLITE_SECONDS = 2.0
DEAF_SECONDS = 5.0
COUNTED_SECONDS = 5.0
SILENT_SECONDS = 2 * SHORT_WATCH_SECONDS + 2 * BACKOFF_SECONDS + 10.0


@pytest.mark.parametrize("lines", [0, pytest.param(1, marks=SLOW), pytest.param(3, marks=SLOW)])
def test_w1_a_watch_that_is_cut_in_the_middle_of_a_line_continues_where_it_was(scene: Scene, lines: int) -> None:
    scene.ready(watch_seconds=LONG_WATCH_SECONDS)
    began = time.monotonic()
    scene.meet(Cut(after_lines=lines), watch_of_widgets)

    scene.apply(*(f"w{number}" for number in range(5)), size=1)
    for number in range(5):
        scene.until(f"w{number}", 1)

    # No watch ends by itself here: the second one is there because the first was really cut.
    assert scene.proxy.count(watch_of_widgets, since=began) == 2
    assert scene.proxy.count(list_of_widgets, since=began) == 0, "resumed, not listed anew"
    # A reconcile is logged after its child was made.
    scene.sandbox.eventually(lambda: all(scene.handled(f"w{number}", action="add") for number in range(5)))
    assert [len(scene.handled(f"w{number}", action="add")) for number in range(5)] == [1] * 5


@pytest.mark.parametrize("lines", [0, pytest.param(1, marks=SLOW)])
def test_w2_a_watch_that_falls_silent_is_given_up_and_nothing_is_missed(scene: Scene, lines: int) -> None:
    scene.ready(watch_seconds=SHORT_WATCH_SECONDS)
    scene.apply("w", size=1)
    scene.until("w", 1)
    scene.meet(Stall(after_lines=lines), watch_of_widgets)
    if lines:
        scene.apply("heard", size=1)
        scene.until("heard", 1)

    scene.apply("w", size=2)

    scene.until("w", 2, within_seconds=SILENT_SECONDS)


@SLOW
def test_w2_a_list_that_is_never_answered_is_given_up_and_sent_again(scene: Scene) -> None:
    scene.apply("w", size=1)
    held = scene.proxy.add(Fault(Hold(), on=list_of_widgets))
    scene.begin()
    scene.sandbox.eventually(lambda: held.hits)

    scene.sandbox.eventually(lambda: scene.proxy.count(list_of_widgets) == 2, within_seconds=SEEN_SECONDS)
    scene.until("w", 1)


Faults: TypeAlias = tuple[tuple[Effect, Predicate, int], ...]


@pytest.mark.parametrize(
    "faults",
    [
        pytest.param(((GONE_EVENT, watch_of_widgets, 1),), id="event"),
        pytest.param(((GONE, watch_of_widgets, 2),), id="status-of-the-watch", marks=SLOW),
        pytest.param(
            ((GONE_EVENT, watch_of_widgets, 1), (Respond(410, b"Gone"), list_of_widgets, 2)),
            id="status-of-the-list",
            marks=SLOW,
        ),
    ],
)
def test_w3_an_expired_version_leads_to_a_new_list_in_which_deletions_are_noticed(scene: Scene, faults: Faults) -> None:
    scene.ready()
    scene.apply("stays", "goes", size=1)
    scene.until("stays", 1)
    scene.until("goes", 1)
    held = scene.blind(watch_of_widgets)
    scene.delete("goes")
    scene.apply("stays", size=2)
    met = [scene.proxy.add(Fault(effect, on=on, times=times)) for effect, on, times in faults]
    began = time.monotonic()
    scene.see(held)

    scene.until("stays", 2)
    scene.until_deleted("goes", size=1)
    assert [fault.hits for fault in met] == [times for _, _, times in faults]
    assert scene.operator.text.count("deleted default/goes") == 1
    scene.no_busy_loop(of_widgets, since=began)


def test_w3_compacted_history_is_survived(start_operator: Start) -> None:
    """The real thing: etcd forgets, the API server restarts with nothing in its cache, the resumed watch is too old.

    Frozen alone, the operator would find the changes in its socket when it wakes: so it is blind first.
    """
    with Sandbox() as own:
        own.apply(crds(operator.crds, GROUP))
        with behind_a_proxy(own, start_operator) as scene:
            scene.begin(watch_seconds=LONG_WATCH_SECONDS, BONNY_LOG_LEVEL="debug").wait_ready()
            scene.apply("stays", "goes", size=1)
            scene.until("stays", 1)
            scene.until("goes", 1)
            held = scene.blind(watch_of_widgets)
            scene.delete("goes")
            scene.apply("stays", size=2)
            scene.operator.process.send_signal(signal.SIGSTOP)
            own.apiserver.kill()
            compact(own)
            own.apiserver.start()
            # While it makes the kind's storage it refuses, and a watch that is refused thrice is listed anew anyway.
            own.eventually(lambda: own.request("GET", WIDGETS).status == 200)
            scene.proxy.remove(*held)
            scene.operator.process.send_signal(signal.SIGCONT)

            scene.until("stays", 2)
            scene.until_deleted("goes", size=1)
            troubles = [line["kind"] for line in scene.operator.lines("watch failed") if "widgets" in line["stream"]]
            assert "expired" in troubles, "the history was really gone"


def newest(sandbox: Sandbox) -> int:
    return int(sandbox.request("GET", WIDGETS).body["metadata"]["resourceVersion"])


# Each is two starts of the servers; to have passed our version is what a watch alone cannot tell.
@pytest.mark.parametrize("at", [*(pytest.param(at, marks=pytest.mark.slow) for at in ("behind", "between")), "passed"])
def test_w3_a_server_that_is_restored_from_a_backup_is_noticed_also_when_it_has_passed_our_version(
    start_operator: Start, tmp_path: Path, at: str
) -> None:
    """Regression: a watch was resumed at a version of the server's future and stayed silent for 204 s; and a list in
    which a user's change had the generation that was handled before left that change for the next period.

    Behind our version, the operator is frozen meanwhile, so that it sees one broken connection. Where the API server is
    to pass it, the operator is refused until then, and lists. Between: the server has passed the version of the stream
    of children, which watched on in silence and showed a child that did not exist, and not that of the widgets' stream.
    """
    passed = at == "passed"
    with Sandbox() as own:
        own.apply([*crds(operator.crds, GROUP), MARK])
        own.eventually(lambda: own.request("GET", WIDGETS).status == 200)
        own.apply(widget("w", size=1))
        with stopped(own) as data:
            shutil.copytree(data, tmp_path / "backup")
        with behind_a_proxy(own, start_operator) as scene:
            scene.begin(watch_seconds=LONG_WATCH_SECONDS, BONNY_LOG_LEVEL="debug").wait_ready()
            scene.apply("w", "lost", size=5)
            scene.until("w", 5)
            scene.until("lost", 5)
            # An API server writes some objects of its own as it starts; the lost history is longer than that.
            children = newest(own)
            for number in range(LOST_VERSIONS):
                noted = widget("w", size=5)
                noted["metadata"]["annotations"] = {"at": str(number)}
                own.apply(noted if at == "between" else {**MARK, "data": {"at": str(number)}})
            before = newest(own)
            refused = Fault(Respond(503), on=of_widgets, times=None)
            if passed:
                scene.proxy.add(refused)
                scene.proxy.cut_all()
            else:
                scene.operator.process.send_signal(signal.SIGSTOP)
            with stopped(own) as data:
                shutil.rmtree(data)
                shutil.copytree(tmp_path / "backup", data)
            assert newest(own) < before
            scene.apply("w", size=7)
            overtaken = {"behind": 0, "between": children, "passed": before}[at]
            while newest(own) <= overtaken:
                own.apply({**MARK, "data": {"at": str(time.monotonic())}})
            assert passed or newest(own) < before
            own.eventually(lambda: not passed or refused.hits >= 3, within_seconds=SEEN_SECONDS)
            scene.proxy.remove(refused)
            scene.operator.process.send_signal(signal.SIGCONT)

            scene.until("w", 7)
            scene.until_deleted("lost", size=5)


LOST_VERSIONS = 200
MARK: Resource = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "mark", "namespace": "default"}}


@pytest.mark.parametrize("lines", [0, pytest.param(1, marks=SLOW)])
def test_w4_a_stream_that_is_always_ended_politely_and_in_silence_is_not_deaf_for_ever(
    scene: Scene, lines: int
) -> None:
    """Regression: silence was counted within one watch, and none of these lasted long enough."""
    scene.begin(watch_seconds=POLITE_SECONDS, TEST_DEAF_SECONDS=str(DEAF_SECONDS)).wait_ready()
    scene.meet(Stall(after_lines=lines, end=True), watch_of_widgets, times=None)
    began = time.monotonic()

    scene.apply("w", size=1)
    scene.until("w", 1)
    scene.apply("w", size=2)
    scene.until("w", 2)

    rounds = (time.monotonic() - began) / DEAF_SECONDS
    assert scene.proxy.count(list_of_widgets, since=began) <= rounds + 1, "and a list no oftener than that"


class FreshBookmarks(Inject):
    """Each watch gets one bookmark of ever newer versions, and ends."""

    end = True
    versions = count(10**9)

    def __init__(self) -> None: ...

    @property
    def data(self) -> bytes:  # type: ignore[override]
        return b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"%d"}}}\n' % next(self.versions)


def test_w4_watches_that_end_after_one_fresh_bookmark_are_opened_once_a_second(scene: Scene) -> None:
    """Regression: what moved the version was followed at once, 1,156 times a second."""
    scene.begin(watch_seconds=POLITE_SECONDS, TEST_DEAF_SECONDS=str(DEAF_SECONDS)).wait_ready()
    (fault,) = scene.meet(FreshBookmarks(), watch_of_widgets, times=None)
    scene.sandbox.eventually(lambda: fault.hits >= WATCHES_AT_ONCE)

    began = time.monotonic()
    scene.sandbox.eventually(lambda: time.monotonic() - began > COUNTED_SECONDS)
    seconds = time.monotonic() - began
    assert seconds / 2 - 1 <= scene.proxy.count(watch_of_widgets, since=began) <= seconds + 2

    # The version that it came to is one of the server's future: silence, and a list.
    scene.proxy.remove(fault)
    scene.apply("w", size=1)
    scene.until("w", 1)


STRANGER = (
    b'{"type":"ADDED","object":{"apiVersion":"example.com/v9","kind":"Gadget","spec":{},'
    b'"metadata":{"name":"x","namespace":"default","uid":"nobody","resourceVersion":"1","generation":1}}}\n'
)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"VERSION"}}}\n', id="bookmark"),
        pytest.param(b'{"type":"WEIRD","object":{"kind":"Widget","metadata":{"name":"x"}}}\n', id="unknown-type"),
        pytest.param(b"\n\n\n", id="empty-lines"),
    ],
)
def test_w5_lines_without_a_change_are_passed_over(scene: Scene, data: bytes) -> None:
    scene.ready(watch_seconds=LONG_WATCH_SECONDS)
    version = scene.sandbox.request("GET", WIDGETS).body["metadata"]["resourceVersion"]
    began = time.monotonic()
    scene.meet(Inject(data.replace(b"VERSION", version.encode())), watch_of_widgets)

    scene.apply("w", size=4)

    scene.until("w", 4)
    assert scene.proxy.count(watch_of_widgets, since=began) == 1, "the same watch goes on"
    assert scene.handled("x") == []


def test_w5_a_bookmark_moves_the_version_from_which_a_watch_continues(scene: Scene) -> None:
    scene.ready(watch_seconds=LONG_WATCH_SECONDS)
    scene.sandbox.apply(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other", "namespace": "default"}}
    )
    version = scene.sandbox.request("GET", WIDGETS).body["metadata"]["resourceVersion"]
    line = b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"VERSION"}}}\n'
    began = time.monotonic()

    scene.meet(Inject(line.replace(b"VERSION", version.encode()), end=True), watch_of_widgets)

    def versions() -> list[str]:
        watches = [request for request in list(scene.proxy.requests) if watch_of_widgets(request)]
        return [request.query["resourceVersion"] for request in watches if request.time >= began]

    scene.sandbox.eventually(lambda: len(versions()) == 2)
    before, after = versions()
    assert before != after == version
    assert scene.proxy.count(list_of_widgets, since=began) == 0


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"garbage\n", id="text"),
        pytest.param(b'{"type":"ADDED","object":{}}\n', id="nameless", marks=SLOW),
        pytest.param(b"\xff\xfe{}\n", id="not-utf-8", marks=SLOW),
        pytest.param(HTML + b"\n", id="html", marks=SLOW),
        pytest.param(STRANGER, id="unknown-kind", marks=SLOW),
        pytest.param(b"[" * 100_000 + b"\n", id="deep", marks=SLOW),
    ],
)
def test_w5_garbage_in_a_watch_is_survived(scene: Scene, data: bytes) -> None:
    scene.ready()
    began = time.monotonic()
    scene.meet(Inject(data), watch_of_widgets, times=2)

    scene.apply("w", size=4)

    scene.until("w", 4)
    assert scene.handled("x") == [], "what a garbled line speaks of is not there"
    scene.no_busy_loop(of_widgets, since=began)
