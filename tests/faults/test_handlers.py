"""Rows P: handlers that fail, and objects that never rest (docs/reliability.md)."""

from __future__ import annotations

import time

from tests.faults.scene import SEEN_SECONDS, Scene, widget
from tests.support.load import storm


def test_p1_one_object_that_always_fails_waits_longer_each_time_and_holds_up_nobody(scene: Scene) -> None:
    scene.ready()
    began = time.monotonic()
    scene.sandbox.apply(widget("bad", mode="raises"))
    failures = lambda: scene.operator.lines("handling failed")  # noqa: E731
    scene.sandbox.eventually(failures)
    scene.apply(*(f"good{number}" for number in range(10)), size=1)

    for number in range(10):
        scene.until(f"good{number}", 1, within_seconds=5)
    scene.sandbox.eventually(lambda: len(failures()) >= 5, within_seconds=SEEN_SECONDS)
    told = scene.status("bad")["conditions"]
    (reconciled,) = [known for known in told if known["type"] == "Reconciled"]
    assert (reconciled["status"], reconciled["reason"]) == ("False", "HandlerFailed")
    assert {line["object"] for line in failures()} == {"default/bad"}
    waits = [line["retry_in_seconds"] for line in failures()]
    bounds = [0.2 * 2**number for number in range(1, len(waits) + 1)]
    assert all(0.2 <= wait <= bound for wait, bound in zip(waits, bounds, strict=True))
    assert sum(waits[:-1]) <= time.monotonic() - began, "it really waited"


def test_p4_a_storm_of_updates_is_coalesced_and_the_last_one_wins(scene: Scene) -> None:
    scene.ready()
    scene.apply("hot", "calm", size=1)
    scene.until("hot", 1)
    path = "/apis/example.com/v1/namespaces/default/widgets/hot"
    with storm(scene.sandbox, path, lambda number: {"spec": {"size": number % 100 + 1}}) as storming:
        scene.sandbox.eventually(lambda: storming.sent >= 300, within_seconds=SEEN_SECONDS)
        scene.apply("calm", size=9)
        scene.until("calm", 9, within_seconds=5)

    # Patches overlap: which one was the last is the API server's to say.
    scene.apply("hot", size=77)
    scene.until("hot", 77)
    assert len(scene.handled("hot")) < storming.sent / 2
