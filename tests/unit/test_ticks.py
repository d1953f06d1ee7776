"""Ticks: a controller that comes to rest, and sentences about those that never do."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from bonny import Axn, Controller, Kind, Owned, Resource, Scope
from bonny.readiness import is_ready
from bonny_dev import testing

NOW = datetime(2026, 3, 1, tzinfo=UTC)
LAMP: Resource = {
    "apiVersion": "example.com/v1",
    "kind": "Lamp",
    "metadata": {"name": "desk", "namespace": "default"},
    "spec": {"size": 2},
}


def config_map(name: str, **data: str) -> Resource:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def deployment(**spec: Any) -> Resource:
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "desk"}, "spec": spec}


class Lamps(Controller[Any]):
    """What the controllers of these tests have in common; `ticks` counts."""

    resource = Kind("example.com/v1", "Lamp", plural="lamps", scope=Scope.NAMESPACED)
    owns = (Owned("v1", "ConfigMap"), Owned("apps/v1", "Deployment"))
    ticks = 0

    async def reconcile(self, axn: Axn[Any]) -> None:
        type(self).ticks += 1
        await self.shine(axn, type(self).ticks)

    async def shine(self, axn: Axn[Any], tick: int) -> None: ...


def lamps(shine: Callable[[Axn[Any], int], object]) -> type[Lamps]:
    async def method(_: Lamps, axn: Axn[Any], tick: int) -> None:
        shine(axn, tick)

    return type("LampController", (Lamps,), {"shine": method, "ticks": 0})


def settles(axn: Axn[Any], tick: int) -> None:
    child = deployment(replicas=2)
    axn.register_descendant(child)
    axn.register_descendant(config_map("desk", size="2"), after=[child], when=is_ready)
    live = axn.observed(child)
    axn.set_condition("Ready", live is not None and is_ready(live), message="as asked")


async def test_a_controller_rests_once_its_children_and_its_status_are_right() -> None:
    ticks = testing.Ticks(lamps(settles), LAMP, others=testing.ready, now=NOW)

    assert await ticks.until_steady(max=5) == 3

    assert [child["kind"] for child in ticks.children] == ["Deployment", "ConfigMap"]
    assert ticks.resource["status"]["conditions"][0]["status"] == "True"


async def test_a_child_that_waits_for_another_one_is_not_there_before() -> None:
    ticks = testing.Ticks(lamps(settles), LAMP, now=NOW)

    await ticks.until_steady()

    assert [child["kind"] for child in ticks.children] == ["Deployment"]


async def test_a_child_that_is_dropped_or_loses_a_field_is_not_there_as_it_was() -> None:
    def shine(axn: Axn[Any], tick: int) -> None:
        if tick == 1:
            axn.register_descendant(config_map("first"))
        axn.register_descendant(config_map("desk", **{"size": "2"} if tick == 1 else {}))

    ticks = testing.Ticks(lamps(shine), LAMP, now=NOW)

    assert [each.what for each in await ticks.tick()] == ["a new ConfigMap", "a new ConfigMap"]
    assert await ticks.tick() == [("ConfigMap desk.data.size", None), ("the end of a ConfigMap", "first")]
    assert await ticks.until_steady() == 1
    assert [child["data"] for child in ticks.children] == [{}]


async def test_a_wait_of_the_handler_passes_at_once_and_its_writes_then_count() -> None:
    def shine(axn: Axn[Any], tick: int) -> None:
        axn.update_status(lambda _: {"expired": axn.now >= NOW + timedelta(hours=1)})
        axn.requeue_at(NOW + timedelta(hours=1))

    ticks = testing.Ticks(lamps(shine), LAMP, now=NOW)
    await ticks.until_steady()

    assert ticks.resource["status"] == {"expired": True}
    assert timedelta(hours=1) < ticks.now - NOW < timedelta(hours=1, minutes=1)


RESTLESS: dict[str, Callable[[Axn[Any], int], object]] = {
    "status.seen (6 times, now '2026-03-01T00:00:05+00:00')": lambda axn, _: axn.update_status(
        lambda status: {**status, "seen": axn.now.isoformat()}
    ),
    "ConfigMap desk.data.revision (5 times, now '6')": lambda axn, tick: axn.register_descendant(
        config_map("desk", revision=str(tick))
    ),
    "a new ConfigMap (6 times, now 'desk-6'), the end of a ConfigMap (5 times, now 'desk-5')": lambda axn, tick: (
        axn.register_descendant(config_map(f"desk-{tick}"))
    ),
}


@pytest.mark.parametrize("sentence", RESTLESS)
async def test_a_controller_that_never_rests_fails_with_the_field_that_it_wrote_again_and_again(sentence: str) -> None:
    ticks = testing.Ticks(lamps(RESTLESS[sentence]), LAMP, now=NOW)

    with pytest.raises(AssertionError) as failure:
        await ticks.until_steady(max=6)

    assert str(failure.value) == f"LampController does not come to rest: within 6 ticks it wrote {sentence}"


async def test_another_writer_of_a_field_that_the_controller_sets_is_a_fight() -> None:
    def others(child: Resource) -> Resource:
        return {**child, "spec": {**child["spec"], "replicas": 5}}

    ticks = testing.Ticks(
        lamps(lambda axn, _: axn.register_descendant(deployment(replicas=2))), LAMP, others=others, now=NOW
    )

    with pytest.raises(AssertionError, match=r"it wrote Deployment desk\.spec\.replicas \(19 times, now 2\)$"):
        await ticks.until_steady()


async def test_a_request_that_is_sent_in_each_tick_is_named_and_a_read_is_not_a_write() -> None:
    class Labels(Lamps):
        rules = ({"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "patch"]},)

        async def shine(self, axn: Axn[Any], tick: int) -> None:
            node = Kind("v1", "Node")
            await axn.client.get(node, ("", "n1"))
            if tick > 1:
                await axn.client.merge_patch(node, ("", "n1"), {"metadata": {"labels": {"tick": str(tick)}}})

    ticks = testing.Ticks(Labels, LAMP, now=NOW, answers={"get nodes n1": {}, "patch nodes n1": {}})

    assert await ticks.until_steady(max=2) == 1
    with pytest.raises(AssertionError, match=r"^Labels does not .* it wrote patch nodes n1 \(5 times, now "):
        await ticks.until_steady(max=5)
