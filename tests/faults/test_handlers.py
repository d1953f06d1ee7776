"""Rows P: handlers that fail (docs/reliability.md)."""

from __future__ import annotations

import time

from tests.faults.scene import SEEN_SECONDS, Scene, widget


def test_p1_one_object_that_always_fails_waits_longer_each_time_and_delays_no_other(scene: Scene) -> None:
    scene.ready()
    began = time.monotonic()
    scene.sandbox.apply(widget("bad", mode="raises"))
    failures = lambda: scene.operator.lines("reconcile failed")  # noqa: E731
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
