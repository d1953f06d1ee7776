"""Events on a real API server: what people see of them, and what becomes of them when something goes wrong."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import shutil
import subprocess
import time
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from bonny.axn import Axn
from bonny.client.api import Client
from bonny.client.config import Kubeconfig
from bonny.controller import Controller
from bonny.core.series import BURST
from bonny.events import EVENT, EVENT_VERBS, Event, EventRecorder, EventType
from bonny.kinds import Kind
from bonny.operator import Operator
from bonny.resource import Resource
from bonny_dev.manifest.bundle import documents
from bonny_dev.sandbox import Sandbox
from bonny_dev.testing.faults import CommitThenDrop, Drop, Effect, Fault, FaultProxy, Hold, ProxiedRequest, Respond

CREATED = Event(EventType.NORMAL, "Created", "Reconcile", "made a child")
FAILED = Event(EventType.WARNING, "Failed", "Reconcile", "made no child")
# What the tests wait for takes milliseconds; the rest is for a loaded machine.
PATIENCE_SECONDS = 30.0


@asynccontextmanager
async def recording(kubeconfig: Path, *, timeout: float = 10.0) -> AsyncIterator[EventRecorder]:
    """A recorder, which sends nothing before it is run or drained."""
    async with Client(Kubeconfig(str(kubeconfig)), user_agent="tests/1", timeout=timeout) as client:
        yield EventRecorder(client, controller="example.com/widgets-operator", instance="pod-1")


@asynccontextmanager
async def running(recorder: EventRecorder) -> AsyncIterator[None]:
    task = asyncio.create_task(recorder.run())
    try:
        yield
        assert not task.done(), "it never ends by itself"
    finally:
        task.cancel()
        await asyncio.wait({task})


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not holds():  # noqa: ASYNC110  what is waited for tells nobody
            await asyncio.sleep(0.01)


async def sent(recorder: EventRecorder) -> None:
    """Wait until it has nothing left to send."""
    await until(lambda: recorder.correlator.unsent == 0)


async def send(recorder: EventRecorder) -> None:
    """Let it send what it has, as at the end of the process."""
    await recorder.drain(seconds=PATIENCE_SECONDS)
    assert recorder.correlator.unsent == 0


@pytest.fixture
async def recorder(sandbox: Sandbox) -> AsyncIterator[EventRecorder]:
    async with recording(sandbox.kubeconfig) as made:
        yield made


@pytest.fixture
def proxy(sandbox: Sandbox) -> Iterator[FaultProxy]:
    with FaultProxy(sandbox) as started:
        yield started


@pytest.fixture
def config_map(sandbox: Sandbox) -> Resource:
    """A new object in the namespace `default`."""
    metadata = {"name": f"told-{uuid.uuid4().hex[:8]}", "namespace": "default"}
    (made,) = sandbox.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    return made


def other_namespace(sandbox: Sandbox) -> str:
    name = f"shop-{uuid.uuid4().hex[:8]}"
    sandbox.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return name


def events_about(sandbox: Sandbox, regarding: Resource, *, namespace: str = "default") -> list[Resource]:
    found = sandbox.items("events.k8s.io/v1", "Event", namespace=namespace)
    return [event for event in found if event["regarding"]["name"] == regarding["metadata"]["name"]]


def event_about(sandbox: Sandbox, regarding: Resource, *, namespace: str = "default") -> Resource:
    (event,) = events_about(sandbox, regarding, namespace=namespace)
    return event


def is_(method: str) -> Callable[[ProxiedRequest], bool]:
    return lambda request: request.method == method


# --- what is told -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("event", [CREATED, FAILED], ids=lambda event: event.type)
async def test_an_event_says_what_happened_to_which_object(
    sandbox: Sandbox, recorder: EventRecorder, config_map: Resource, event: Event
) -> None:
    async with running(recorder):
        recorder.record(config_map, event)
        await sent(recorder)

    found = event_about(sandbox, config_map)
    name, uid = config_map["metadata"]["name"], config_map["metadata"]["uid"]
    told = {field: found[field] for field in ("type", "reason", "action", "note")}
    assert told == {"type": event.type, "reason": event.reason, "action": "Reconcile", "note": event.message}
    where = {"namespace": "default", "name": name, "uid": uid}
    assert found["regarding"] == {"apiVersion": "v1", "kind": "ConfigMap", **where}
    reporter = (found["reportingController"], found["reportingInstance"])
    assert reporter == ("example.com/widgets-operator", "pod-1")
    assert re.fullmatch(rf"{name}\.[0-9a-f]{{16}}", found["metadata"]["name"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", found["eventTime"])
    assert "series" not in found


async def test_an_event_names_the_other_object_that_it_is_about(
    sandbox: Sandbox, recorder: EventRecorder, config_map: Resource
) -> None:
    child = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "child", "namespace": "default", "uid": "u-1"}}
    recorder.record(config_map, Event(EventType.NORMAL, "Created", "Reconcile", "made it", related=child))
    await send(recorder)

    related = event_about(sandbox, config_map)["related"]
    assert related == {"apiVersion": "v1", "kind": "Secret", "name": "child", "namespace": "default", "uid": "u-1"}


async def test_repeats_are_one_event_whose_count_grows(
    sandbox: Sandbox, recorder: EventRecorder, config_map: Resource
) -> None:
    async with running(recorder):
        recorder.record(config_map, CREATED)
        await sent(recorder)
        first = event_about(sandbox, config_map)
        recorder.record(config_map, CREATED)
        await sent(recorder)
        second = event_about(sandbox, config_map)
        for _ in range(40):
            recorder.record(config_map, CREATED)
        assert recorder.correlator.unsent == 40
        await recorder.drain(seconds=PATIENCE_SECONDS)

    last = event_about(sandbox, config_map)
    assert ("series" in first, second["series"]["count"], last["series"]["count"]) == (False, 2, 42)
    assert first["eventTime"] == last["eventTime"] < second["series"]["lastObservedTime"]
    assert second["series"]["lastObservedTime"] < last["series"]["lastObservedTime"]


async def test_a_burst_before_the_first_request_is_one_request(
    sandbox: Sandbox, proxy: FaultProxy, config_map: Resource
) -> None:
    async with recording(proxy.kubeconfig) as recorder:
        for _ in range(1000):
            recorder.record(config_map, CREATED)
        await send(recorder)

    assert event_about(sandbox, config_map)["series"]["count"] == 1000
    assert [request.method for request in proxy.requests] == ["PATCH"]


async def test_an_object_does_not_get_more_events_than_its_budget_allows(
    sandbox: Sandbox, recorder: EventRecorder, config_map: Resource
) -> None:
    for number in range(3 * BURST):
        recorder.record(config_map, Event(EventType.NORMAL, "Counted", "Reconcile", f"it is {number} now"))
    await send(recorder)

    assert len(events_about(sandbox, config_map)) == BURST
    assert recorder.correlator.limited == 2 * BURST


@pytest.mark.parametrize(
    ("message", "note"),
    [
        ("", None),
        ("x" * 5000, "x" * 1024),
        ("x" + "é" * 1024, "x" + "é" * 511),
        ("two\nlines, \x00 and \ud800", "two\nlines, \x00 and ?"),
    ],
    ids=["empty", "long", "cut-between-characters", "odd-characters"],
)
async def test_every_message_is_taken(
    sandbox: Sandbox, recorder: EventRecorder, config_map: Resource, message: str, note: str | None
) -> None:
    recorder.record(config_map, Event(EventType.NORMAL, "Told", "Reconcile", message))
    await send(recorder)

    assert event_about(sandbox, config_map).get("note") == note


async def test_the_longest_names_are_taken(sandbox: Sandbox, config_map: Resource) -> None:
    word = "é" * 64
    async with Client(Kubeconfig(str(sandbox.kubeconfig)), user_agent="tests/1") as client:
        recorder = EventRecorder(client, controller=f"{'x' * 249}.com/{'y' * 63}", instance="z" * 300)
        recorder.record(config_map, Event(EventType.NORMAL, word, word, "long"))
        await send(recorder)

    found = event_about(sandbox, config_map)
    assert (found["reason"], found["action"], found["reportingInstance"]) == (word, word, "z" * 128)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("plain", r"plain\."),
        ("x" * 253, r"x{236}\."),
        (f"{'x' * 235}.{'y' * 17}", r"event\."),
        ("system:node:reader", r"event\."),
    ],
    ids=["plain", "longest", "cut-at-a-dot", "no-dns-name"],
)
async def test_an_object_without_a_namespace_has_its_events_in_default_whatever_it_is_called(
    sandbox: Sandbox, recorder: EventRecorder, name: str, told: str
) -> None:
    api = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}
    role = sandbox.request(
        "POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", {**api, "metadata": {"name": name}, "rules": []}
    ).body
    try:
        recorder.record({**role, **api}, CREATED)
        await send(recorder)
    finally:
        sandbox.delete(api["apiVersion"], "ClusterRole", name)

    found = event_about(sandbox, role)
    assert found["regarding"] == {**api, "name": name, "uid": role["metadata"]["uid"]}
    assert re.fullmatch(rf"{told}[0-9a-f]{{16}}", found["metadata"]["name"])


async def test_events_are_in_the_namespace_of_their_object(sandbox: Sandbox, recorder: EventRecorder) -> None:
    namespace = other_namespace(sandbox)
    (told,) = sandbox.apply(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "told", "namespace": namespace}}
    )
    recorder.record(told, CREATED)
    await send(recorder)

    assert event_about(sandbox, told, namespace=namespace)["regarding"]["uid"] == told["metadata"]["uid"]


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl on PATH")
async def test_people_see_it_with_kubectl(
    sandbox: Sandbox, recorder: EventRecorder, config_map: Resource, tmp_path: Path
) -> None:
    def kubectl(*words: str) -> str:
        command = ["kubectl", "--kubeconfig", str(sandbox.kubeconfig), "--cache-dir", str(tmp_path), *words]
        environ = {**os.environ, "HOME": str(tmp_path)}
        return subprocess.run(command, env=environ, capture_output=True, text=True, check=True, timeout=60).stdout

    name = config_map["metadata"]["name"]
    recorder.record(config_map, CREATED)
    await send(recorder)
    for _ in range(2):
        recorder.record(config_map, FAILED)
    await send(recorder)

    described = kubectl("describe", "configmap", name)
    assert re.search(r"Normal +Created +\S+ +example\.com/widgets-operator +made a child", described)
    assert re.search(r"Warning +Failed +\S+ \(x2 over \S+\) +example\.com/widgets-operator +made no child", described)
    assert len(re.findall(rf"(?m)^\S+ +(?:Normal|Warning) +\w+ +configmap/{name} ", kubectl("get", "events"))) == 2


# --- what goes wrong --------------------------------------------------------------------------------------------------


async def test_an_event_that_is_gone_is_created_anew_with_its_whole_count(
    sandbox: Sandbox, recorder: EventRecorder, config_map: Resource
) -> None:
    """As when its time to live is over, or somebody cleans up."""
    for _ in range(3):
        recorder.record(config_map, CREATED)
    await send(recorder)
    first = event_about(sandbox, config_map)
    sandbox.delete("events.k8s.io/v1", "Event", first["metadata"]["name"])
    recorder.record(config_map, CREATED)
    assert recorder.correlator.unsent == 1
    await send(recorder)

    second = event_about(sandbox, config_map)
    assert second["series"]["count"] == 4
    assert second["metadata"]["uid"] != first["metadata"]["uid"]


@pytest.mark.parametrize("lost", [1, 2])
async def test_a_creation_whose_answer_was_lost_is_one_event(
    sandbox: Sandbox, proxy: FaultProxy, config_map: Resource, lost: int
) -> None:
    for _ in range(lost):
        proxy.add(Fault(CommitThenDrop()))
    async with recording(proxy.kubeconfig) as recorder, running(recorder):
        recorder.record(config_map, CREATED)
        await sent(recorder)
        recorder.record(config_map, CREATED)
        await sent(recorder)

    assert event_about(sandbox, config_map)["series"]["count"] == 2
    assert [request.method for request in proxy.requests] == ["PATCH"] * (lost + 2)


async def test_what_occurs_again_before_a_lost_answer_is_known_is_counted(
    sandbox: Sandbox, proxy: FaultProxy, config_map: Resource
) -> None:
    proxy.add(Fault(CommitThenDrop()))
    async with recording(proxy.kubeconfig) as recorder, running(recorder):
        recorder.record(config_map, CREATED)
        await until(lambda: proxy.count(is_("PATCH")) == 1)
        for _ in range(9):
            recorder.record(config_map, CREATED)
        await sent(recorder)

    assert event_about(sandbox, config_map)["series"]["count"] == 10


@pytest.mark.parametrize("effect", [Respond(503), Drop(), CommitThenDrop()], ids=["refused", "request-lost", "lost"])
async def test_a_count_that_could_not_be_written_is_written_later(
    sandbox: Sandbox, proxy: FaultProxy, config_map: Resource, effect: Effect
) -> None:
    async with recording(proxy.kubeconfig) as recorder, running(recorder):
        recorder.record(config_map, CREATED)
        await sent(recorder)
        proxy.add(Fault(effect, on=is_("PATCH")))
        recorder.record(config_map, CREATED)
        await sent(recorder)

    assert event_about(sandbox, config_map)["series"]["count"] == 2
    assert (recorder.correlator.dropped, proxy.count(is_("PATCH"))) == (0, 3)


async def test_events_survive_a_restart_of_the_api_server(config_map: Resource) -> None:
    with Sandbox() as own:
        async with recording(own.kubeconfig) as recorder, running(recorder):
            recorder.record(config_map, CREATED)
            await sent(recorder)
            await asyncio.to_thread(own.apiserver.kill)
            recorder.record(config_map, CREATED)
            recorder.record(config_map, FAILED)
            await asyncio.to_thread(own.apiserver.start)
            await sent(recorder)
        found = {event["reason"]: event for event in events_about(own, config_map)}

    assert found.keys() == {"Created", "Failed"}
    assert found["Created"]["series"]["count"] == 2
    assert recorder.correlator.dropped == 0


async def test_without_the_permission_it_is_said_once_and_nothing_fails(
    sandbox: Sandbox, config_map: Resource, caplog: pytest.LogCaptureFixture
) -> None:
    """With the rule that the log names, and no other, everything can be sent."""
    name = f"teller-{uuid.uuid4().hex[:8]}"
    sandbox.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "default"}})
    async with recording(sandbox.service_account_kubeconfig("default", name)) as recorder, running(recorder):
        for event in (CREATED, FAILED, CREATED, CREATED):
            recorder.record(config_map, event)
            await sent(recorder)
        lines = [known.__dict__ for known in caplog.records if known.name == "bonny.events"]

        assert [line["msg"] for line in lines] == ["the API server rejected an event"]
        rule = '- {apiGroups: ["events.k8s.io"], resources: ["events"], verbs: [create, patch]}'
        assert (lines[0]["missing_rule"], recorder.correlator.refused) == (rule, 4)
        assert "(403)" in lines[0]["error"]

        sandbox.apply(granted(name))
        await asyncio.to_thread(sandbox.eventually, lambda: is_granted(sandbox, "default", account=f"default:{name}"))
        for _ in range(2):
            recorder.record(config_map, CREATED)
            await sent(recorder)

    assert event_about(sandbox, config_map)["series"]["count"] == 2


def granted(name: str) -> list[Resource]:
    """The rule of the recorder, for a ServiceAccount, in the namespace `default`."""
    api = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": name, "namespace": "default"}}
    rule = {"apiGroups": [EVENT.group], "resources": [EVENT.plural], "verbs": list(EVENT_VERBS)}
    subject = {"kind": "ServiceAccount", "name": name, "namespace": "default"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
    return [
        {**api, "kind": "Role", "rules": [rule]},
        {**api, "kind": "RoleBinding", "subjects": [subject], "roleRef": role},
    ]


def is_granted(sandbox: Sandbox, namespace: str, *, account: str) -> bool:
    """Whether the authorizer has heard of it."""
    attributes = {"namespace": namespace, "verb": "patch", "group": EVENT.group, "resource": EVENT.plural}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": f"system:serviceaccount:{account}", "resourceAttributes": attributes},
    }
    answer = sandbox.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    return bool(answer.body["status"]["allowed"])


class Watching(Controller[Any]):
    """Of a namespaced kind, and of one without a namespace."""

    resource = (Kind("v1", "ConfigMap"), Kind("rbac.authorization.k8s.io/v1", "ClusterRole"))

    async def reconcile(self, axn: Axn[Any]) -> None:
        """Nothing is to be done."""


@pytest.mark.parametrize(("watch", "elsewhere"), [("all", 0), ("namespace", 1)])
async def test_the_rights_of_the_manifest_are_enough(
    sandbox: Sandbox, config_map: Resource, watch: str, elsewhere: int
) -> None:
    """An operator that watches its own namespace may tell of what is there, and of what is in no namespace."""
    name = f"op-{uuid.uuid4().hex[:8]}"
    operator = Operator(name=name, group="example.com", controllers=(Watching,), watch=watch)
    sandbox.apply(documents(operator, image=None, namespace=name))
    await asyncio.to_thread(sandbox.eventually, lambda: is_granted(sandbox, name, account=f"{name}:{name}"))
    meta = {"name": name, "uid": name}
    own = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {**meta, "namespace": name}}
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": meta}
    other = {**own, "metadata": {**meta, "namespace": "kube-public"}}
    async with recording(sandbox.service_account_kubeconfig(name, name)) as recorder, running(recorder):
        for several in ((own, role, other), (own, role)):
            for told in several:
                recorder.record(told, CREATED)
            await sent(recorder)

    assert recorder.correlator.refused == elsewhere
    assert event_about(sandbox, own, namespace=name)["series"]["count"] == 2
    assert event_about(sandbox, role)["series"]["count"] == 2


async def test_an_event_that_the_api_server_does_not_take_is_said_once_and_holds_up_nothing(
    sandbox: Sandbox, recorder: EventRecorder, config_map: Resource, caplog: pytest.LogCaptureFixture
) -> None:
    odd = Event(cast("EventType", "Odd"), "Odd", "Reconcile", "of no known type")
    async with running(recorder):
        for event in (odd, CREATED, odd):
            recorder.record(config_map, event)
            await sent(recorder)

    lines = [known.__dict__ for known in caplog.records if known.name == "bonny.events"]
    assert [line["msg"] for line in lines] == ["the API server rejected an event"]
    assert "(422)" in lines[0]["error"]
    assert (recorder.correlator.refused, event_about(sandbox, config_map)["reason"]) == (2, "Created")


@pytest.mark.parametrize("ended", [False, True], ids=["terminating", "gone"])
async def test_events_in_a_namespace_that_ends_are_dropped_quietly(
    sandbox: Sandbox, recorder: EventRecorder, caplog: pytest.LogCaptureFixture, ended: bool
) -> None:
    namespace = f"shop-{uuid.uuid4().hex[:8]}" if ended else other_namespace(sandbox)
    told = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "w1", "namespace": namespace, "uid": "u-1"}}
    if not ended:
        sandbox.delete("v1", "Namespace", namespace)
    recorder.record(told, CREATED)
    await send(recorder)

    assert (recorder.correlator.refused, recorder.correlator.dropped) == (1, 0)
    assert [known for known in caplog.records if known.name == "bonny.events"] == []


async def test_the_count_of_a_series_is_still_written_while_its_namespace_ends(
    sandbox: Sandbox, recorder: EventRecorder
) -> None:
    namespace = other_namespace(sandbox)
    told = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "w1", "namespace": namespace, "uid": "u-1"}}
    recorder.record(told, CREATED)
    async with running(recorder):
        await sent(recorder)
        sandbox.delete("v1", "Namespace", namespace)
        recorder.record(told, CREATED)
        await sent(recorder)

    assert event_about(sandbox, told, namespace=namespace)["series"]["count"] == 2


# --- the end of the process -------------------------------------------------------------------------------------------


async def test_a_drain_ends_in_time_and_tells_what_was_left(
    proxy: FaultProxy, config_map: Resource, caplog: pytest.LogCaptureFixture
) -> None:
    held = Hold()
    proxy.add(Fault(held, times=None))
    try:
        async with recording(proxy.kubeconfig) as recorder, running(recorder):
            for _ in range(3):
                recorder.record(config_map, CREATED)
            recorder.record(config_map, FAILED)
            began = time.monotonic()
            await recorder.drain(seconds=0.3)
            took = time.monotonic() - began
    finally:
        held.until.set()

    assert 0.3 <= took < 2.0
    (line,) = [known for known in caplog.records if known.name == "bonny.events"]
    assert (line.levelno, line.message, line.__dict__["count"]) == (logging.WARNING, "events dropped", 4)


async def test_a_drain_waits_for_what_is_being_sent(sandbox: Sandbox, proxy: FaultProxy, config_map: Resource) -> None:
    held = Hold()
    proxy.add(Fault(held, on=is_("PATCH")))
    async with recording(proxy.kubeconfig) as recorder, running(recorder):
        recorder.record(config_map, CREATED)
        await until(lambda: proxy.count(is_("PATCH")) == 1)
        for _ in range(4):
            recorder.record(config_map, CREATED)
        draining = asyncio.create_task(recorder.drain(seconds=PATIENCE_SECONDS))
        held.until.set()
        await draining

    assert event_about(sandbox, config_map)["series"]["count"] == 5
    assert (recorder.correlator.unsent, recorder.correlator.dropped) == (0, 0)


async def test_counts_of_many_series_are_written_at_the_end(
    sandbox: Sandbox, recorder: EventRecorder, config_map: Resource
) -> None:
    metadata = config_map["metadata"]
    several = [{**config_map, "metadata": {**metadata, "uid": f"u-{number}"}} for number in range(100)]
    async with running(recorder):
        for times in (1, 1, 3):
            for told in several:
                for _ in range(times):
                    recorder.record(told, CREATED)
            if times == 1:
                await sent(recorder)
        await recorder.drain(seconds=PATIENCE_SECONDS)

    found = events_about(sandbox, config_map)
    assert (len(found), {event["series"]["count"] for event in found}) == (100, {5})
