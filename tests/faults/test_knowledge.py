"""Rows U and S: what an operator does not know, or knows too late (docs/reliability.md)."""

from __future__ import annotations

import pytest

from bonny.testing.faults import Drop, Fault
from tests.faults.scene import (
    FORBIDDEN,
    GONE_EVENT,
    GROUP,
    LONG_WATCH_SECONDS,
    SLOW,
    Scene,
    list_of_config_maps,
    of_widgets,
    watch_of_config_maps,
    watch_of_widgets,
)


@pytest.mark.parametrize("learns", [pytest.param("by-events", marks=SLOW), "by-a-list"])
def test_u1_deleted_and_created_again_while_nobody_looked(scene: Scene, learns: str) -> None:
    """A list shows only that the UID is another one: the second object of that name was never seen."""
    scene.ready(watch_seconds=LONG_WATCH_SECONDS)
    scene.apply("w", size=1)
    scene.until("w", 1)
    held = scene.blind(watch_of_widgets, watch_of_config_maps)

    scene.delete("w")
    scene.apply("w", size=2)
    scene.delete("w")
    scene.sandbox.delete("v1", "ConfigMap", "w")
    scene.apply("w", size=3)
    expired = Fault(GONE_EVENT, on=watch_of_widgets)
    if learns == "by-a-list":
        scene.proxy.add(expired)
    scene.see(held)

    scene.until("w", 3)
    scene.until_deleted("w", size=1)
    if learns == "by-a-list":
        assert expired.hits == 1
        assert "deleted default/w size=2" not in scene.operator.text
    else:
        scene.until_deleted("w", size=2)
    assert scene.operator.text.count("deleted default/w size=1") == 1
    owner = scene.sandbox.get(f"{GROUP}/v1", "Widget", "w")
    child = scene.sandbox.get("v1", "ConfigMap", "w")
    assert owner is not None
    assert child is not None
    assert child["metadata"]["ownerReferences"][0]["uid"] == owner["metadata"]["uid"]
    actions = [line["action"] for line in scene.handled("w")]
    assert actions.index("delete") < len(actions) - 1 - actions[::-1].index("add"), "first the old one's delete"


def test_u2_a_child_of_an_owner_that_is_gone_is_not_made_again_and_again(scene: Scene) -> None:
    """Regression: with its own stream refused, the operator fought the garbage collector, played here by the test."""
    scene.ready()
    scene.apply("w", size=1)
    scene.until("w", 1)
    scene.meet(FORBIDDEN, of_widgets, times=None)
    scene.sandbox.eventually(lambda: "widgets.example.com: forbidden" in scene.operator.probe("/readyz")[1])
    scene.delete("w")
    scene.sandbox.delete("v1", "ConfigMap", "w")

    scene.sandbox.eventually(lambda: scene.operator.lines("will try again"))
    assert scene.sandbox.get("v1", "ConfigMap", "w") is None


def test_s3_a_child_that_somebody_else_re_created_behind_a_lagging_stream_is_not_overwritten(scene: Scene) -> None:
    """Regression: what the store still showed as ours was applied by force onto a stranger's object."""
    scene.ready()
    scene.apply("w", size=1)
    scene.until("w", 1)
    scene.proxy.add(Fault(Drop(), on=list_of_config_maps, times=None))
    scene.blind(watch_of_config_maps)
    scene.sandbox.delete("v1", "ConfigMap", "w")
    theirs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "w", "namespace": "default"}}
    (before,) = scene.sandbox.apply({**theirs, "data": {"size": "precious"}})

    scene.apply("w", size=2)

    scene.sandbox.eventually(lambda: scene.operator.lines("handling failed"))
    assert scene.sandbox.get("v1", "ConfigMap", "w") == before
