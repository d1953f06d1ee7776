"""Rows W: what a list or a watch may do to an operator (docs/reliability.md)."""

from __future__ import annotations

import signal
import time
from typing import TypeAlias

import pytest

from bonny.api.crd import crds
from bonny.sandbox import Sandbox
from bonny.testing.faults import Cut, Effect, Fault, Hold, Inject, Stall, Status
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
    watch_of_widgets,
)
from tests.support.handwritten import operator

# Watches of a second end themselves after that, and are given up after another one; then comes the longest first wait.
# The rest is for a slow machine.
SHORT_WATCH_SECONDS = 1.0
SILENT_SECONDS = 2 * SHORT_WATCH_SECONDS + 2 * BACKOFF_SECONDS + 10.0


@pytest.mark.parametrize("lines", [0, pytest.param(1, marks=SLOW), pytest.param(3, marks=SLOW)])
def test_w1_a_watch_that_is_cut_in_the_middle_of_a_line_goes_on_where_it_was(scene: Scene, lines: int) -> None:
    scene.ready(watch_seconds=LONG_WATCH_SECONDS)
    began = time.monotonic()
    scene.meet(Cut(after_lines=lines), watch_of_widgets)

    scene.apply(*(f"w{number}" for number in range(5)), size=1)
    for number in range(5):
        scene.until(f"w{number}", 1)

    # No watch ends by itself here: the second one is there because the first was really cut.
    assert scene.proxy.count(watch_of_widgets, since=began) == 2
    assert scene.proxy.count(list_of_widgets, since=began) == 0, "resumed, not listed anew"
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
def test_w2_a_list_that_is_never_answered_is_given_up_and_asked_for_again(scene: Scene) -> None:
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
            ((GONE_EVENT, watch_of_widgets, 1), (Status(410, b"Gone"), list_of_widgets, 2)),
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
            troubles = [line["kind"] for line in scene.operator.lines("cannot follow") if "widgets" in line["stream"]]
            assert "expired" in troubles, "the history was really gone"


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
def test_w5_lines_that_say_nothing_are_passed_over(scene: Scene, data: bytes) -> None:
    scene.ready(watch_seconds=LONG_WATCH_SECONDS)
    version = scene.sandbox.request("GET", WIDGETS).body["metadata"]["resourceVersion"]
    began = time.monotonic()
    scene.meet(Inject(data.replace(b"VERSION", version.encode())), watch_of_widgets)

    scene.apply("w", size=4)

    scene.until("w", 4)
    assert scene.proxy.count(of_widgets, since=began) == 1, "the same watch goes on"
    assert scene.handled("x") == []


def test_w5_a_bookmark_moves_the_version_from_which_a_watch_goes_on(scene: Scene) -> None:
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
