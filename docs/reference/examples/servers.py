"""The examples are about the Widget of [widgets.py](examples/widgets.py); each is run by a test. `testing` is
`bonny_dev.testing`.
"""

from __future__ import annotations

import logging

from bonny import List, Next, PeriodicTask, Reconciler, Resource, Stop, TaskRun, Watcher
from bonny_dev import testing
from docs.reference.examples.widgets import Widget, widget

log = logging.getLogger(__name__)


async def reconciler() -> None:
    class Reports(Reconciler[Widget]):
        cron = "0 6 * * MON-FRI"
        timezone = "Europe/Berlin"
        rules = ({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["patch"]},)

        async def reconcile(self, resource: Resource) -> None:
            report: Resource = {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": f"{resource['metadata']['name']}-report", "namespace": "default"},
                "data": {"size": str(Widget.spec_of(resource).size)},
            }
            await self.client.apply(List("v1", "ConfigMap"), report)

    answers = testing.Answers({"patch configmaps default/w1-report": None})
    await testing.reconcile(Reports, widget("w1", size=3), answers=answers)
    assert answers.requests[0].body["data"] == {"size": "3"}


async def watcher() -> None:
    class PodLog(Watcher):
        operation = List("v1", "Pod", label_selector="app=web")

        async def add(self, resource: Resource) -> None:
            log.info("a pod", extra={"pod": resource["metadata"]["name"]})

        async def delete(self, resource: Resource) -> None:
            log.info("a pod is gone", extra={"pod": resource["metadata"]["name"]})

    assert PodLog.all_rules() == [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}]


async def periodic_task() -> None:
    async def count_nodes(run: TaskRun, most: int) -> Next | Stop:
        nodes = await run.client.list(List("v1", "Node"))
        if len(nodes) > most:
            return Stop(f"{len(nodes)} nodes are more than {most}")
        return Next(run.state + 1)  # the runs so far

    hourly = PeriodicTask(
        "count-nodes",
        count_nodes,
        arguments=(1,),
        cron="0 * * * *",
        state=0,
        rules=({"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]},),
    )
    one: list[Resource] = [{"metadata": {"name": "n1"}}]
    assert await testing.run_task(hourly, answers={"list nodes": one}) == Next(1)
    assert isinstance(await testing.run_task(hourly, answers={"list nodes": one * 2}), Stop)
