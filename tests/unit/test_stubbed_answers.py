"""`answers` of `bonny_dev.testing`: the requests of a handler, answered by its test."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from bonny import Axn, Controller, Key, Kind, List, Owned, PeriodicTask, Reconciler, Resource, TaskRun, compat
from bonny.client import (
    ApiError,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    NotServed,
    Refusal,
    ServerError,
    Throttled,
    Unauthorized,
    Unreachable,
)
from bonny_dev import testing
from tests.support.widget import Widget, widget

POD = Kind("v1", "Pod")
NODE = Kind("v1", "Node")
DEPLOYMENT = Kind("apps/v1", "Deployment")
EVERYTHING = tuple(
    {"apiGroups": groups, "resources": resources, "verbs": ["get", "list", "create", "update", "patch", "delete"]}
    for groups, resources in (
        ([""], ["pods", "nodes", "pods/eviction", "namespaces"]),
        (["apps"], ["deployments", "deployments/scale"]),
        (["example.com"], ["widgets"]),
    )
)


def pod(name: str = "a") -> Resource:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": {}}


def eviction(name: str = "a") -> Resource:
    return {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "default"}}


class Sends(compat.Controller[Widget]):
    """Sends what its test wants."""

    rules = EVERYTHING

    async def reconcile(self, axn: compat.Axn[Widget]) -> None:
        axn.assigns["answer"] = await self.options["send"](axn.client)


async def sent(send: Any, answers: Any) -> testing.Handled[Any]:
    return await testing.handle(Sends.configured(options={"send": send}), widget(), answers=answers)


@pytest.mark.parametrize(
    ("send", "name", "answer"),
    [
        (lambda client: client.get(POD, "a", namespace="default"), "get pods default/a", pod()),
        (lambda client: client.get(POD, Key("default", "a")), "get pods default/a", pod()),
        (lambda client: client.get(POD, ("default", "a")), "get pods default/a", pod()),
        (lambda client: client.get(NODE, "n1"), "get nodes n1", {"kind": "Node"}),
        (lambda client: client.get(Widget, ("default", "w")), "get widgets.example.com default/w", widget()),
        (lambda client: client.list(POD, namespace="default"), "list pods default", [pod()]),
        (lambda client: client.list(POD), "list pods", [pod("a"), pod("b")]),
        (lambda client: client.list(Widget), "list widgets.example.com", []),
        (lambda client: client.list(Kind("v1", "Namespace")), "list namespaces", []),
        (lambda client: client.get(Kind("v1", "Namespace"), "n"), "get namespaces n", {}),
        (lambda client: client.create(POD, pod()), "create pods default/a", pod()),
        (
            lambda client: client.create(POD, eviction(), subresource="eviction"),
            "create pods/eviction default/a",
            {"kind": "Status"},
        ),
        (lambda client: client.replace(POD, pod()), "update pods default/a", pod()),
        (
            lambda client: client.merge_patch(DEPLOYMENT, ("default", "d"), {}, subresource="scale"),
            "patch deployments.apps/scale default/d",
            {"kind": "Scale"},
        ),
        (
            lambda client: client.get(DEPLOYMENT, "d", namespace="default", subresource="scale"),
            "get deployments.apps/scale default/d",
            {"kind": "Scale"},
        ),
        (lambda client: client.json_patch(POD, ("default", "a"), []), "patch pods default/a", pod()),
    ],
)
async def test_a_request_gets_its_answer_and_is_remembered_by_its_name(send: Any, name: str, answer: Any) -> None:
    token = await sent(send, {name: answer})
    assert token.assigns["answer"] == answer
    assert [str(request) for request in token.requests] == [name]


async def test_what_was_sent_is_known_afterwards() -> None:
    token = await sent(lambda client: client.apply(POD, pod()), {"patch pods default/a": None})
    (request,) = token.requests
    assert (request.verb, request.resource, request.key) == ("patch", "pods", Key("default", "a"))
    assert request.body == pod()
    assert request.query["fieldManager"] == "test"
    assert token.assigns["answer"] == (pod(), False)


async def test_without_an_object_what_was_sent_comes_back() -> None:
    token = await sent(lambda client: client.create(POD, pod()), {"create pods default/a": None})
    assert token.assigns["answer"] == pod()
    token = await sent(lambda client: client.delete(POD, ("default", "a")), {"delete pods default/a": None})
    assert token.assigns["answer"] is None


ERRORS = (Unauthorized, Forbidden, NotFound, NotServed, Conflict, Invalid, Throttled, ServerError)


@pytest.mark.parametrize("kind", [*ERRORS, Unreachable, OSError])
async def test_an_error_class_is_raised_as_the_client_raises_it(kind: type[Exception]) -> None:
    with pytest.raises(kind) as raised:
        await sent(lambda client: client.delete(POD, ("default", "a")), {"delete pods default/a": kind})
    assert type(raised.value) is kind
    if isinstance(raised.value, Refusal):
        assert str(raised.value).startswith(f"cannot delete pods default/a ({raised.value.status})")


async def test_every_refusal_can_be_an_answer() -> None:
    assert set(ERRORS) == set(Refusal.__subclasses__())


async def test_an_error_of_the_test_itself_is_raised() -> None:
    with pytest.raises(Unreachable, match=r"^cannot get nodes n: cut off"):
        await sent(lambda client: client.get(NODE, "n"), {"get nodes n": Unreachable("cut off")})


async def test_a_function_answers() -> None:
    def answers(request: testing.SentRequest) -> Any:
        return {"metadata": {"name": request.key.name}} if request.verb == "get" else NotFound

    async def both(client: Any) -> Any:
        with suppress(NotFound):
            await client.delete(NODE, "n")
        return await client.get(NODE, "m")

    token = await sent(both, answers)
    assert token.assigns["answer"] == {"metadata": {"name": "m"}}
    assert [str(request) for request in token.requests] == ["delete nodes n", "get nodes m"]


# --- what fails a test ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("answers", [None, {"get pods other/a": pod()}])
async def test_a_request_without_an_answer_fails_with_what_to_write(answers: Any) -> None:
    with pytest.raises(AssertionError) as failed:
        await sent(lambda client: client.get(POD, ("default", "a")), answers)
    assert str(failed.value) == (
        'no answer to "get pods default/a" is given: write answers={"get pods default/a": {...}}'
    )
    with pytest.raises(AssertionError, match=r'write answers=\{"list pods": \[\.\.\.\]\}'):
        await sent(lambda client: client.list(POD), answers)


async def test_a_handler_that_swallows_the_failure_fails_nevertheless() -> None:
    async def swallows(client: Any) -> None:
        with suppress(Exception):
            await client.get(NODE, "n")

    with pytest.raises(AssertionError, match=r'^no answer to "get nodes n"'):
        await sent(swallows, {})


class Undeclared(Controller[Widget]):
    """Owns ConfigMaps; nothing allows it to read Nodes."""

    owns = (Owned("v1", "ConfigMap"),)

    async def reconcile(self, axn: Axn[Widget]) -> None:
        await axn.client.get(Kind("v1", "ConfigMap"), "c", namespace=axn.key.namespace)
        with suppress(ApiError):
            await axn.client.get(NODE, "n1")


@pytest.mark.parametrize("answer", [{}, NotFound])
async def test_a_request_that_the_manifest_would_not_grant_fails_with_the_rule(answer: Any) -> None:
    answers = {"get configmaps default/c": {}, "get nodes n1": answer}
    with pytest.raises(AssertionError) as failed:
        await testing.handle(Undeclared, widget(), answers=answers)
    assert str(failed.value) == (
        'Undeclared may not send "get nodes n1": add to its `rules`: '
        '{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}'
    )
    rule = {"apiGroups": [""], "resources": ["nodes"], "resourceNames": ["n1"], "verbs": ["get"]}
    await testing.handle(Undeclared.configured(rules=(rule,)), widget(), answers=answers)


async def test_the_recorder_of_permissions_sees_stubbed_requests() -> None:
    with testing.record_permissions() as recorder:
        await sent(lambda client: client.get(NODE, "n"), {"get nodes n": {}})
    assert {(asked.resource, asked.names, asked.verb) for asked in recorder.used} == {("nodes", ("n",), "get")}


# --- servers ----------------------------------------------------------------------------------------------------------


class Evicts(Reconciler):
    operation = List("v1", "Pod")

    async def reconcile(self, pod: Resource) -> None:
        await self.client.create(self.operation, eviction(pod["metadata"]["name"]), subresource="eviction")


async def counts(run: TaskRun) -> None:
    await run.client.list(NODE)


async def test_a_reconciler_and_a_task_are_answered_and_checked_too() -> None:
    answers = testing.Answers({"create pods/eviction default/a": None, "list nodes": []})
    with pytest.raises(
        AssertionError, match=r'^Evicts may not send "create pods/eviction default/a": add to its `rule'
    ):
        await testing.reconcile(Evicts, pod(), answers=answers)
    with pytest.raises(AssertionError, match=r'^counter may not send "list nodes": add to its `rules`'):
        await testing.run_task(PeriodicTask("counter", counts), answers=answers)
    rules = ({"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]},)
    assert await testing.run_task(PeriodicTask("counter", counts, rules=rules), answers=answers) is None
    names = ["create pods/eviction default/a", "list nodes", "list nodes"]
    assert [str(request) for request in answers.requests] == names
