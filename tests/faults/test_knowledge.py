"""Rows U and S: what an operator does not know, or knows too late (docs/reliability.md)."""

from __future__ import annotations

import time

import pytest

from bonny.resource import owner_reference
from bonny_dev.testing.faults import Drop, Fault, Hold, ProxiedRequest, Respond
from tests.faults.scene import (
    FORBIDDEN,
    GONE_EVENT,
    GROUP,
    LONG_WATCH_SECONDS,
    SEEN_SECONDS,
    SLOW,
    Scene,
    list_of_config_maps,
    list_of_widgets,
    of_config_maps,
    of_widgets,
    watch_of_config_maps,
    watch_of_widgets,
    widget,
)

# What is not done in the first tries is not done at all: each of them decides by itself.
TRIES = 3
CHILD = "/api/v1/namespaces/default/configmaps/w"
# Of something that knows no such path: an API server that starts, or a proxy.
TEXT_404 = Respond(404, b"404 page not found\n")


def apply_of_the_child(request: ProxiedRequest) -> bool:
    return request.method == "PATCH" and request.path == CHILD


def read_of_the_child(request: ProxiedRequest) -> bool:
    return request.method == "GET" and request.path == CHILD


def only_widgets_fail(readiness: str) -> bool:
    return "widgets.example.com: forbidden" in readiness and "configmaps: in sync" in readiness


def second_page_of_widgets(request: ProxiedRequest) -> bool:
    return list_of_widgets(request) and "continue" in request.query


@pytest.mark.parametrize("learns", [pytest.param("by-events", marks=SLOW), "by-a-list"])
def test_u1_deleted_and_created_again_during_an_outage(scene: Scene, learns: str) -> None:
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
    # A reconcile is logged after its child was made.
    scene.sandbox.eventually(lambda: scene.handled("w")[-1]["action"] == "add")
    actions = [line["action"] for line in scene.handled("w")]
    assert actions.index("delete") < len(actions) - 1 - actions[::-1].index("add"), "first the old one's delete"


def test_u2_a_child_of_an_owner_that_is_gone_is_not_made_again_and_again(scene: Scene) -> None:
    """Regression: with its own stream refused, the operator fought the garbage collector, played here by the test."""
    scene.ready()
    scene.apply("w", size=1)
    scene.until("w", 1)
    scene.meet(FORBIDDEN, of_widgets, times=None)
    # All streams were cut. Wait for the children's, too: until it is back, an apply is sent for a child that was seen
    # last, and the API server refuses it (no object has that UID any more).
    scene.sandbox.eventually(lambda: only_widgets_fail(scene.operator.probe("/readyz")[1]), within_seconds=SEEN_SECONDS)
    scene.delete("w")
    gone = time.monotonic()
    scene.sandbox.delete("v1", "ConfigMap", "w")

    scene.sandbox.eventually(lambda: len(scene.operator.lines("retry requested")) >= TRIES, within_seconds=SEEN_SECONDS)
    assert scene.proxy.count(apply_of_the_child, since=gone) == 0
    assert scene.sandbox.get("v1", "ConfigMap", "w") is None


def test_u2_a_child_of_an_owner_that_is_gone_is_not_made_again_while_the_owners_are_listed(scene: Scene) -> None:
    """Regression: between two pages the stream was without trouble, and showed an owner that had gone in the gap."""
    scene.begin(watch_seconds=LONG_WATCH_SECONDS, TEST_PAGE_SIZE="1").wait_ready()
    for name in ("a", "w", "z"):
        scene.apply(name, size=1)
        scene.until(name, 1)
    second_page = scene.proxy.add(Fault(Hold(), on=second_page_of_widgets))
    held = scene.blind(watch_of_widgets)
    scene.delete("w")
    scene.proxy.add(Fault(GONE_EVENT, on=watch_of_widgets))
    scene.see(held)
    scene.sandbox.eventually(lambda: second_page.hits == 1, within_seconds=40)

    gone = time.monotonic()
    scene.sandbox.delete("v1", "ConfigMap", "w")

    scene.sandbox.eventually(lambda: len(scene.operator.lines("retry requested")) >= TRIES, within_seconds=SEEN_SECONDS)
    assert scene.proxy.count(apply_of_the_child, since=gone) == 0
    assert isinstance(second_page.effect, Hold)
    second_page.effect.until.set()
    scene.until_deleted("w", size=1)
    assert scene.proxy.count(apply_of_the_child, since=gone) == 0
    assert scene.sandbox.get("v1", "ConfigMap", "w") is None


def test_s3_a_child_re_created_by_another_client_behind_a_lagging_stream_is_not_overwritten(scene: Scene) -> None:
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

    scene.sandbox.eventually(
        lambda: len(scene.operator.lines("reconcile failed")) >= TRIES, within_seconds=SEEN_SECONDS
    )
    assert scene.sandbox.get("v1", "ConfigMap", "w") == before


def test_s2_an_object_that_another_client_creates_at_the_same_moment_is_not_taken_over(scene: Scene) -> None:
    """Regression: our apply joined in, and when taking it back failed, the object counted as ours."""
    scene.ready()
    on_its_way = scene.proxy.add(Fault(Hold(), on=apply_of_the_child))
    scene.apply("w", size=1)
    scene.sandbox.eventually(lambda: on_its_way.hits == 1)
    theirs = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "w", "namespace": "default"}}
    # Not the key that we set: an apply that is not forced would be refused for its sake.
    (before,) = scene.sandbox.apply({**theirs, "data": {"theirs": "precious"}})
    failing = scene.proxy.add(Fault(Respond(503), on=apply_of_the_child))

    assert isinstance(on_its_way.effect, Hold)
    on_its_way.effect.until.set()

    scene.sandbox.eventually(lambda: len(scene.operator.lines("reconcile failed")) >= 3)
    assert scene.sandbox.get("v1", "ConfigMap", "w") == before
    assert failing.hits == 1


def test_s2_a_create_of_ours_that_is_carried_out_late_leaves_the_child_whole(scene: Scene) -> None:
    """Regression: the next try took the object for a stranger's and took our fields out of it, for ever."""
    scene.ready()
    second_try = scene.proxy.add(Fault(Hold(), on=apply_of_the_child))
    scene.apply("w", size=1)
    scene.sandbox.eventually(lambda: second_try.hits == 1)
    owner = scene.sandbox.get(f"{GROUP}/v1", "Widget", "w")
    assert owner is not None
    first_try = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "w",
            "labels": {
                "app.kubernetes.io/managed-by": "handwritten",
                "bonny.dev/owner-uid": owner["metadata"]["uid"],
            },
            "ownerReferences": [owner_reference(owner)],
        },
        "data": {"size": "1"},
    }
    path = f"{CHILD}?fieldManager=handwritten/WidgetController&force=false"
    assert scene.sandbox.request("PATCH", path, first_try, content_type="application/apply-patch+yaml").status == 201

    assert isinstance(second_try.effect, Hold)
    second_try.effect.until.set()

    scene.sandbox.eventually(lambda: len(scene.handled("w")) >= 2)
    assert scene.published("w") == "1"
    scene.apply("w", size=2)
    scene.until("w", 2)


def test_s2_a_404_of_a_proxy_does_not_mean_that_the_child_is_gone(scene: Scene) -> None:
    """Regression: it was taken for the answer that there is none, and the child that we then found for a stranger's."""
    scene.sandbox.apply(widget("w"))
    first = scene.begin().wait_ready()
    scene.until("w", 1)
    assert first.stop()[0] == 0
    scene.proxy.add(Fault(FORBIDDEN, on=of_config_maps, times=None))
    nobody = scene.proxy.add(Fault(TEXT_404, on=read_of_the_child))

    scene.begin().wait_ready()

    scene.sandbox.eventually(lambda: nobody.hits == 1)
    scene.sandbox.eventually(lambda: len(scene.handled("w")) >= 2)
    assert scene.published("w") == "1"
