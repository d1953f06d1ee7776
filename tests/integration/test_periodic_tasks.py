"""Periodic tasks on a real API server: registered by a handler, with arguments, while the operator runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bonny import Kind, List, Next, PeriodicTask, Resource, Stop, TaskRun, Watcher, telemetry
from bonny.client.errors import Forbidden
from bonny.servers.periodic import PeriodicTasks
from bonny_dev.sandbox import Sandbox
from tests.support.heard import Heard, heard
from tests.support.place import place
from tests.support.waiting import running, until

POD = Kind("v1", "Pod")
LIST_PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}
EVICT_PODS = {"apiGroups": [""], "resources": ["pods/eviction"], "verbs": ["create"]}


class PodEvictor:
    """Evicts the pods that a policy selects, one at a time, until its budget is used up."""

    @staticmethod
    async def evict(run: TaskRun, policy: Resource) -> Next | Stop | None:
        if run.state >= int(policy["data"]["budget"]):
            return Stop("the budget is used up")
        namespace, selector = policy["metadata"]["namespace"], policy["data"]["selector"]
        pods = await run.client.list(POD, namespace=namespace, label_selector=selector)
        if not pods:
            return None
        metadata = {"name": pods[0]["metadata"]["name"], "namespace": namespace}
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
        await run.client.create(POD, eviction, subresource="eviction")
        return Next(run.state + 1)


class Policies(Watcher):
    """Lets a task run for each policy, as long as the policy exists."""

    operation = List("v1", "ConfigMap", label_selector="kind=eviction-policy")

    async def add(self, policy: Resource) -> None:
        assert self.tasks is not None
        name, interval = policy["metadata"]["name"], float(policy["data"]["interval"])
        self.tasks.register(
            PeriodicTask(f"evict {name}", PodEvictor.evict, arguments=(policy,), interval=interval, state=0)
        )

    def delete(self, policy: Resource) -> None:
        assert self.tasks is not None
        self.tasks.unregister(f"evict {policy['metadata']['name']}")


@pytest.fixture
def told() -> Iterator[Heard]:
    with heard(*(name for name in telemetry.EVENTS if name.startswith("bonny.task."))) as listener:
        yield listener


def of(told: Heard, task: str) -> list[str]:
    """What was told of one task."""
    return [event.name.removeprefix("bonny.task.") for event in told.events if event.metadata["task"] == task]


async def test_the_pod_evictor_is_registered_by_a_handler_with_arguments_and_ends_with_its_policy(
    sandbox: Sandbox, told: Heard
) -> None:
    async with place(sandbox, [*Policies.all_rules(), LIST_PODS, EVICT_PODS]) as here:
        for number in range(6):
            here.pod(f"db{number}", tier="db")
            here.pod(f"web{number}", tier="web")
        tasks = PeriodicTasks(here.client)
        policies = Policies(here.client, namespaces=(here.namespace,), tasks=tasks)
        async with running(tasks.run), running(policies.run):
            for tier, budget in (("db", "4"), ("web", "100")):
                labels = {"kind": "eviction-policy"}
                here.config_map(tier, labels=labels, selector=f"tier={tier}", budget=budget, interval="0.1")
            await until(lambda: told.of("bonny.task.stopped"))
            await until(lambda: {name[:3] for name in here.pods()} == {"db4", "db5"})
            here.delete("ConfigMap", "web")
            await until(lambda: told.of("bonny.task.unregistered"))

    assert of(told, "evict db") == ["registered", "initialized", *4 * ["succeeded"], "stopped"]
    assert told.of("bonny.task.stopped")[0].metadata["reason"] == "the budget is used up"
    web = of(told, "evict web")
    assert web[:2] == ["registered", "initialized"]
    assert web.count("succeeded") >= 6
    assert "unregistered" in web[-2:]
    assert (tasks.failed, tasks.halted) == (0, {})


async def test_a_task_that_may_not_do_its_work_is_halted_and_shows_why(sandbox: Sandbox, told: Heard) -> None:
    async with place(sandbox, [LIST_PODS]) as here:
        here.pod("a", tier="db")
        metadata = {"namespace": here.namespace}
        policy = {"metadata": metadata, "data": {"selector": "tier=db", "budget": "9"}}
        evictor = PeriodicTask("evictor", PodEvictor.evict, arguments=(policy,), interval=0.1, state=0)
        tasks = PeriodicTasks(here.client, [evictor])
        async with running(tasks.run):
            await until(lambda: tasks.halted)
        assert here.pods() == {"a"}

    assert of(told, "evictor") == ["registered", "initialized", "failed"]
    assert isinstance(told.events[-1].metadata["error"], Forbidden)
    assert tasks.halted["evictor"].startswith("cannot create pods a (403)")
