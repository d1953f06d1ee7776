"""Rows I: writes that are lost on their way, or whose answer is (docs/reliability.md)."""

from __future__ import annotations

from bonny_dev.testing.faults import CommitThenDrop, Drop, Fault, ProxiedRequest, Respond, is_write
from tests.faults.scene import Predicate, Scene


def test_i2_i3_a_write_that_never_arrived_or_whose_answer_was_lost_is_made_good(scene: Scene) -> None:
    scene.ready()
    for number, effect in enumerate((Drop(), CommitThenDrop())):
        for nth in range(2):
            name = f"w{number}{nth}"
            fault = scene.proxy.add(Fault(effect, on=_nth_write(nth)))
            scene.apply(name, size=5)
            scene.until(name, 5)
            # The failed try reports itself first; what counts is what comes of it.
            scene.sandbox.eventually(lambda name=name: scene.status(name)["observedGeneration"] == 1)
            assert fault.hits == 1
    children = scene.sandbox.items("v1", "ConfigMap", label_selector="app.kubernetes.io/managed-by=handwritten")
    assert len(children) == 4


def test_i2_a_status_that_no_server_accepted_is_written_by_the_next_try(scene: Scene) -> None:
    """Regression: the text 404 of an API server that starts was taken for "the object is gone", and nothing failed."""
    scene.ready()
    nobody = scene.proxy.add(Fault(Respond(404, b"404 page not found\n"), on=_status_of_w))
    scene.apply("w", size=5)

    scene.sandbox.eventually(lambda: scene.status("w")["observedGeneration"] == 1)

    assert nobody.hits == 1
    (failed,) = scene.operator.lines("reconcile failed")
    assert "404" in failed["error"]
    assert scene.operator.lines("object is gone, status not written") == []


def _status_of_w(request: ProxiedRequest) -> bool:
    return is_write(request) and request.path.endswith("/widgets/w/status")


def _nth_write(nth: int) -> Predicate:
    """The n-th write from now on."""
    seen = iter(range(1_000))
    return lambda request: is_write(request) and next(seen) == nth
