"""Metrics: what /metrics says of an operator at work on a real API server."""

from __future__ import annotations

import asyncio
import re
import threading
import urllib.request
from collections import Counter
from typing import Any

from bonny import Controller, List, Operator, Resource, Retry, Terminal, Watcher
from bonny.filters import fits, least_allocated
from bonny.kinds import Kind
from bonny.scheduler import Scheduler
from bonny.scheduler.nodes import Nodes
from bonny.scheduler.scheduler import Choice
from bonny.scheduler.views import PodView
from bonny_dev.sandbox import Sandbox
from tests.support.schedulers import add_nodes, add_pods, remove_all
from tests.support.scheduling import node, pod
from tests.support.serving import Serving, serving
from tests.support.things import GROUP, config_map

NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "metrics"}}
QUEUES = ("active", "backoff", "unschedulable")
STREAM = {
    "reader": "controllers",
    "resource": "configmaps.v1",
    "watched": "metrics",
    "selector": "",
    "form": "object",
}
SAMPLE = re.compile(r"(?P<name>\w+)(?:\{(?P<labels>.*)\})? (?P<value>\S+)")


class Maps(Controller[Any]):
    """Ends each handling as the object's name says, once."""

    resource = Kind("v1", "ConfigMap", namespace="metrics")
    max_concurrent = 3
    timeout = 2.0

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()

    async def reconcile(self, axn: Any) -> None:
        name = axn.key.name
        self.seen[name] += 1
        if name == "later":
            axn.requeue_after(3600)
        if self.seen[name] > 1:
            return
        match name:
            case "again":
                raise Retry
            case "soon":
                raise Retry(after=0.0)
            case "wrong":
                raise Terminal("it will never do")
            case "broken":
                raise RuntimeError("no")
            case "slow":
                await asyncio.sleep(60)


class Accounts(Watcher):
    operation = List("v1", "ServiceAccount", namespace="metrics")

    async def add(self, account: Resource) -> None: ...


def scrape(at_work: Serving) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{at_work.process.probes.port}/metrics", timeout=5) as answer:
        assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        text: str = answer.read().decode()
        return text


def series(name: str, **labels: str) -> str:
    """As it is written: the labels in the order of their names."""
    pairs = ",".join(f'{label}="{value}"' for label, value in sorted(labels.items()))
    return f"{name}{{{pairs}}}"


def read(text: str) -> dict[str, float]:
    """The samples, each by its name and its labels as they are written."""
    found: dict[str, float] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            match = SAMPLE.fullmatch(line)
            assert match is not None, line
            series = line.rpartition(" ")[0]
            assert series not in found, f"{series} is there twice"
            found[series] = float(match["value"])
    return found


def test_what_an_operator_does_is_told_by_the_names_that_controller_runtime_uses(sandbox: Sandbox) -> None:
    sandbox.apply(NAMESPACE)
    operator = Operator(name="metrics", group=GROUP, controllers=[Maps, Accounts])
    with serving(operator, sandbox.kubeconfig) as at_work:
        for name in ("fine", "later", "again", "soon", "wrong", "broken", "slow"):
            sandbox.apply(config_map(name, namespace="metrics"))
        ended = 'controller_runtime_reconcile_total{controller="Maps",result="%s"}'
        # Three are tried again, and the namespace has a ConfigMap of its own only where a controller manager runs.
        sandbox.eventually(lambda: read(scrape(at_work))[ended % "success"] == 5)

        text = scrape(at_work)
        found = read(text)

    assert {result: found[ended % result] for result in ("error", "requeue", "requeue_after")} == {
        "error": 3,
        "requeue": 1,
        "requeue_after": 2,
    }
    assert found['controller_runtime_reconcile_errors_total{controller="Maps"}'] == 3
    assert found['controller_runtime_terminal_reconcile_errors_total{controller="Maps"}'] == 1
    assert found['controller_runtime_reconcile_timeouts_total{controller="Maps"}'] == 1
    assert found['controller_runtime_reconcile_time_seconds_count{controller="Maps"}'] == 11
    assert found['controller_runtime_reconcile_time_seconds_bucket{controller="Maps",le="1.0"}'] == 10
    assert found['controller_runtime_reconcile_time_seconds_bucket{controller="Maps",le="+Inf"}'] == 11
    assert found['controller_runtime_max_concurrent_reconciles{controller="Maps"}'] == 3
    assert found['controller_runtime_active_workers{controller="Maps"}'] == 0
    assert found['workqueue_adds_total{controller="Maps",name="Maps"}'] == 11
    assert found['workqueue_retries_total{controller="Maps",name="Maps"}'] == 4
    assert found['workqueue_depth{controller="Maps",name="Maps"}'] == 0
    assert found['bonny_queue_timers{controller="Maps",name="Maps"}'] == 6

    assert found[series("bonny_stream_synced", **STREAM)] == 1
    assert found[series("bonny_stream_lists_total", **STREAM)] == 1
    assert found[series("bonny_store_objects", **STREAM)] == 7
    assert 7 * 200 < found[series("bonny_store_bytes", **STREAM)] < 7 * 2000
    assert 0 < found[series("bonny_stream_age_seconds", **STREAM)] < 60
    assert found[series("bonny_stream_failing", **STREAM, kind="forbidden")] == 0
    watcher = {**STREAM, "reader": "Accounts", "resource": "serviceaccounts.v1"}
    assert series("bonny_stream_synced", **watcher) in found

    host = at_work.process.recorder._client.requests.host
    assert re.fullmatch(r"127\.0\.0\.1:\d+", host)
    assert found[f'rest_client_requests_total{{code="200",host="{host}",method="GET"}}'] >= 2
    # Of the failures: those that ask for another try are none worth telling.
    assert found['bonny_events_total{outcome="recorded"}'] == 3
    assert found['leader_election_master_status{name="metrics"}'] == 1
    assert found["process_resident_memory_bytes"] > 1e6


class Emptiest(Scheduler):
    name = "emptiest"
    check = fits

    def select_node_for_pod(self, pod: PodView, nodes: Nodes) -> Choice:
        return nodes.fitting(pod).best(least_allocated)


def test_what_a_scheduler_does_is_told_by_the_names_that_kube_scheduler_uses(sandbox: Sandbox) -> None:
    try:
        add_nodes(sandbox, [node("n1", cpu="1")])
        with serving(Operator(name="metrics", group=GROUP, controllers=[Emptiest]), sandbox.kubeconfig) as at_work:
            add_pods(
                sandbox, [pod(name, scheduler="emptiest", cpu=cpu) for name, cpu in (("small", "1"), ("big", "2"))]
            )
            attempts = 'scheduler_schedule_attempts_total{profile="emptiest",result="%s"}'
            sandbox.eventually(
                lambda: all(read(scrape(at_work))[attempts % result] for result in ("scheduled", "unschedulable"))
            )
            found = read(scrape(at_work))
    finally:
        remove_all(sandbox)

    waiting = {queue: found[f'scheduler_pending_pods{{profile="emptiest",queue="{queue}"}}'] for queue in QUEUES}
    assert sum(waiting.values()) == 1
    assert found['scheduler_unschedulable_pods{plugin="NodeResourcesFit",profile="emptiest"}'] == 1
    assert found[attempts % "scheduled"] == 1
    assert found[attempts % "error"] == 0
    of_attempts = 'scheduler_scheduling_attempt_duration_seconds_count{profile="emptiest",result="scheduled"}'
    assert found[of_attempts] == 1
    binding = 'extension_point="Bind",profile="emptiest",status="Success"'
    assert found[f"scheduler_framework_extension_point_duration_seconds_count{{{binding}}}"] == 1
    assert found['scheduler_scheduling_algorithm_duration_seconds_count{profile="emptiest"}'] >= 2


def test_a_handler_that_hangs_in_a_thread_is_counted_when_it_ends(sandbox: Sandbox) -> None:
    """Regression: its failure was counted at its timeout, and the successes fell: a restart, for Prometheus."""
    release = threading.Event()

    class Hanging(Controller[Any]):
        resource = Kind("v1", "ConfigMap", namespace="hanging")
        timeout = 0.1

        def reconcile(self, axn: Any) -> None:
            if axn.key.name == "hangs" and axn.tries == 0:
                release.wait(20)

    sandbox.apply({**NAMESPACE, "metadata": {"name": "hanging"}})
    sandbox.apply(config_map("fine", namespace="hanging"))
    with serving(Operator(name="hanging", group=GROUP, controllers=[Hanging]), sandbox.kubeconfig) as at_work:

        def counted(result: str) -> float:
            return read(scrape(at_work))[
                f'controller_runtime_reconcile_total{{controller="Hanging",result="{result}"}}'
            ]

        try:
            sandbox.eventually(lambda: counted("success") == 1)
            sandbox.apply(config_map("hangs", namespace="hanging"))
            longest = 'workqueue_longest_running_processor_seconds{controller="Hanging",name="Hanging"}'
            sandbox.eventually(lambda: read(scrape(at_work))[longest] > 3 * Hanging.timeout)
            assert (counted("success"), counted("error")) == (1, 0)
        finally:
            release.set()
        sandbox.eventually(lambda: (counted("success"), counted("error")) == (2, 1))


def test_a_stream_that_may_not_list_is_told_as_forbidden(sandbox: Sandbox) -> None:
    sandbox.apply(NAMESPACE)
    sandbox.apply(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "nobody", "namespace": "metrics"}}
    )
    operator = Operator(name="metrics", group=GROUP, controllers=[Maps, Accounts])
    at_work = Serving(operator, sandbox.service_account_kubeconfig("metrics", "nobody"))
    at_work._thread.start()
    try:
        forbidden = series("bonny_stream_failing", **STREAM, kind="forbidden")
        sandbox.eventually(lambda: at_work.process._started and read(scrape(at_work))[forbidden] == 1)
        found = read(scrape(at_work))
    finally:
        at_work.stop()
    assert found[series("bonny_stream_failures_total", **STREAM, kind="forbidden")] == 1
    assert found[series("bonny_stream_synced", **STREAM)] == 0
    host = at_work.process.recorder._client.requests.host
    assert found[f'rest_client_requests_total{{code="403",host="{host}",method="GET"}}'] >= 1
