"""Rows P4, P5 and W6: more, larger or faster than anybody expects (docs/reliability.md).

What a run reached and cost is printed: `pytest tests/faults/test_floods.py -s`.
"""

from __future__ import annotations

import time
from contextlib import nullcontext

import pytest

from bonny_dev.crd.definition import crds
from bonny_dev.sandbox import Sandbox
from bonny_dev.testing.faults import Fault, Hold
from tests.conftest import Start
from tests.faults.flood import LINUX, Flood, flooding
from tests.faults.scene import GONE_EVENT, SEEN_SECONDS, SLOW
from tests.support import memory
from tests.support.load import storm
from tests.support.processes import pipelined
from tests.support.things import GROUP, THING, Thing, condition_of, names, own_namespace, thing, until_reconciled

# A person who waits does not notice; an operator that works off a flood first takes longer.
PROMPT_SECONDS = 5.0
# Handlers that look at something outside take about as long.
HANDLING_SECONDS = 0.1
# What a process needs besides for a moment: connections, log lines, interpreter.
BESIDES = 8.0
# Probes, timers and other kinds wait for each other's steps. 50 ms is a hundredth of a probe's patience.
LONGEST_STEP = 0.050


@LINUX
@pytest.mark.parametrize("seconds", [2, pytest.param(10, marks=SLOW)])
def test_p4_a_storm_of_updates_is_coalesced_and_the_last_one_wins(flood: Flood, seconds: int) -> None:
    """As fast as the API server takes updates of one object; more patchers only get into each other's way."""
    flood.sync()
    flood.apply_grain("hot", size=0, seconds=HANDLING_SECONDS)
    flood.until("hot", 0)
    before = flood.settled()
    with storm(flood.sandbox, f"{flood.grains}/hot", lambda number: {"spec": {"size": number}}, patchers=2) as storming:
        for number in range(2 * seconds):
            flood.light(f"b{number}", size=number)
            flood.until(f"b{number}", number, within_seconds=PROMPT_SECONDS)
        flood.sandbox.eventually(
            lambda: storming.seconds >= seconds and storming.sent > 100 * seconds, within_seconds=SEEN_SECONDS
        )

    # Patches overlap: which one was the last is the API server's to say.
    last = flood.sandbox.request("GET", f"{flood.grains}/hot").body["spec"]["size"]
    flood.until("hot", last)
    handled = len(flood.handled("hot"))
    grown = flood.peak() - before
    print(f"{storming.sent} updates, {storming.rate:.0f}/s; {handled} handlings; {grown:.1f} MiB more")
    assert handled <= storming.seconds / HANDLING_SECONDS + 2
    assert handled < storming.sent / 4
    assert grown < BESIDES


@LINUX
@pytest.mark.parametrize("children", [1_000, pytest.param(5_000, marks=SLOW)])
def test_p5_an_object_with_thousands_of_children_costs_neither_the_lease_nor_memory_nor_other_objects(
    sandbox: Sandbox, start_operator: Start, children: int
) -> None:
    """Regression: each child had a connection of its own; 2,500 cost the lease, and then all memory of the pod."""
    sandbox.apply(crds([Thing], GROUP))
    with own_namespace(sandbox) as namespace:
        settings = {"BONNY_POD_NAMESPACE": namespace, "BONNY_WATCH_NAMESPACE": namespace}
        operator = start_operator(pipelined(), BONNY_LEADER_ELECTION="true", **settings).wait_ready()
        sandbox.apply(thing("small", namespace=namespace, parts=["of-small"]))
        until_reconciled(sandbox, "small", namespace)
        sandbox.apply(thing("large", namespace=namespace, parts=[f"p{number}" for number in range(children)]))
        began, waits = time.monotonic(), list[float]()
        while not waits or condition_of(sandbox.get(*THING, "large", namespace=namespace))[0] != "True":
            asked, size = time.monotonic(), len(waits) + 2
            sandbox.apply(thing("small", namespace=namespace, parts=["of-small"], size=size))
            sandbox.eventually(
                lambda size=size: size_of(sandbox, namespace) == str(size), within_seconds=PROMPT_SECONDS
            )
            waits.append(time.monotonic() - asked)
            assert waits[-1] + asked - began < SEEN_SECONDS, "the large object is not reconciled"
        took, most = time.monotonic() - began, memory.peak(operator.process.pid)

        print(f"{children} children: {took:.1f} s, at most {most:.0f} MiB, another object waited {max(waits):.1f} s")
        assert len(names(sandbox, namespace)) >= children
        assert most <= 140
        assert operator.lines("no longer leading") == operator.lines("the lease cannot be used") == []
        # It is written after the status.
        (only,) = sandbox.eventually(
            lambda: [line for line in operator.lines("reconciled") if line["object"] == f"{namespace}/large"]
        )
        assert only["action"] == "add"
        assert operator.stop()[0] == 0


def size_of(sandbox: Sandbox, namespace: str) -> str:
    found = sandbox.get("v1", "ConfigMap", "of-small", namespace=namespace)
    return "" if found is None else str(found["data"]["size"])


@LINUX
@pytest.mark.parametrize("objects", [20, pytest.param(60, marks=SLOW)])
def test_w6_objects_as_large_as_etcd_takes_them_are_listed_and_hold_up_no_other_kind(
    flood: Flood, objects: int
) -> None:
    names = [f"g{number:02}" for number in range(objects)]
    flood.create(names, kibibytes=1_400)
    payload = objects * 1_400 / 1024
    held = flood.proxy.add(Fault(effect := Hold(), on=flood.list_of_grains))
    flood.begin_flooded()
    flood.light("first", size=1)
    flood.until("first", 1)
    assert held.hits == 1, "the other kind did not wait for this list"
    empty = flood.settled()
    effect.until.set()

    flood.until_handled(objects + 1, within_seconds=60)
    synced = flood.peak()
    settled = flood.settled()
    lists = flood.proxy.count(flood.list_of_grains)
    flood.meet(GONE_EVENT, flood.watch_of_grains)
    flood.apply_grain("zz", size=7)
    for number in range(3):
        flood.light(f"b{number}", size=number)
        flood.until(f"b{number}", number, within_seconds=PROMPT_SECONDS)
    flood.until("zz", 7, within_seconds=60)

    assert flood.proxy.count(flood.list_of_grains) > lists
    listed = flood.peak()
    print(
        f"{payload:.0f} MiB of objects: {empty:.0f} MiB before, {synced:.0f} at most in the first list, "
        f"{settled:.0f} afterwards, {listed:.0f} at most in the second"
    )
    # The answer, and the objects that are cut out of it; and half of that for the allocator.
    allowed = 2.5 * payload + BESIDES
    assert synced - empty <= allowed
    assert listed - settled <= allowed


@LINUX
@pytest.mark.parametrize("objects", [2_000, pytest.param(100_000, marks=SLOW)])
def test_w6_no_step_of_a_flood_holds_the_event_loop(start_operator: Start, sandbox: Sandbox, objects: int) -> None:
    """First list, second list, half of everything gone at once, and a storm with a long queue of timers."""
    with Sandbox() if objects > 2_000 else nullcontext(sandbox) as where, flooding(where, start_operator) as flood:
        names = [f"g{number:06}" for number in range(objects)]
        flood.create(names)
        patience = 30.0 + objects / 200
        flood.begin_flooded()
        with flood.phase(f"{objects} objects, first list"):
            flood.until_handled(objects, within_seconds=patience)
        with flood.phase("listed anew"):
            flood.meet(GONE_EVENT, flood.watch_of_grains)
            flood.apply_grain("zz", size=0)
            flood.until("zz", 0, within_seconds=patience)
        held = flood.blind(flood.watch_of_grains)
        flood.remove(names[: objects // 2])
        with flood.phase(f"{objects // 2} deletions found by a list"):
            flood.proxy.add(Fault(GONE_EVENT, on=flood.watch_of_grains))
            flood.see(held)
            flood.until_handled(objects // 2, action="delete", within_seconds=patience)
        with (
            flood.phase("a storm"),
            storm(
                flood.sandbox, f"{flood.grains}/zz", lambda number: {"spec": {"size": number}}, patchers=2
            ) as storming,
        ):
            flood.sandbox.eventually(lambda: storming.sent > 1_000, within_seconds=patience)

        assert flood.handled_names("delete") == set(names[: objects // 2])
        assert [str(hold) for hold in flood.held() if hold.seconds > LONGEST_STEP] == []
