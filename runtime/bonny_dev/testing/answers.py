"""Answers: the API server of a test without a server, as the client of a handler sees it.

    evicts = {"list pods default": [pod("a")], "create pods/eviction default/a": Throttled}
    handled = await testing.handle(Evicts, policy(), answers=evicts)
    assert [str(request) for request in handled.requests] == list(evicts)

A request is named as RBAC and error messages name it: verb, resource, then namespace and name, as in
`patch deployments.apps/scale default/web`, `get nodes n1`, or `list pods` for all namespaces. An apply is a `patch`.

The answer is an object; for a list its objects; None for the object that was sent; an error class of
`bonny.client`, or any error. Instead of a mapping, a function takes the `SentRequest` and returns the answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

import msgspec

from bonny.client import Client, NotServed, ServerError
from bonny.client.errors import CLASSES
from bonny.client.request import ApiRequest
from bonny.client.transport import Answer
from bonny.operator import Operator, Servable
from bonny.resource import Key, Resource
from bonny.steps import default_steps

from ..manifest.rbac import grants
from ..manifest.recorder import PermissionRecorder
from ..manifest.request_info import request_info

STATUSES: Final = {kind: status for status, kind in CLASSES.items()} | {NotServed: 404, ServerError: 500}

# Values are not typed more closely: to mypy, a mapping with an object and an error has values of type `object`.
AnyAnswers: TypeAlias = "Answers | Mapping[str, Any] | Callable[[SentRequest], Any]"


@dataclass(frozen=True, slots=True)
class SentRequest:
    """A request that was sent; `str()` is its name."""

    verb: str
    """As in an RBAC rule: get, list, create, update, patch (also for an apply), delete."""

    resource: str
    """As in error messages, with its subresource: `pods/eviction`, `deployments.apps/scale`."""

    key: Key
    """Namespace and name; of a list only the namespace, which is empty for all namespaces."""

    body: Any
    """The decoded body; None without one."""

    query: Mapping[str, str]
    """The parameters, such as `labelSelector`, `fieldManager` and `dryRun`."""

    def __str__(self) -> str:
        return f"{self.verb} {self.resource} {self.key if self.key.name else self.key.namespace}".rstrip()


class Answers:
    """The answers of a test and the requests that came. Needed where there is no token: `run_task`, `reconcile`."""

    def __init__(self, answers: Mapping[str, Any] | Callable[[SentRequest], Any]) -> None:
        self.requests: list[SentRequest] = []
        """The requests so far, in order."""
        self._answers = answers

    def reply(self, request: SentRequest) -> Any:
        """Note `request` and return its answer. Raises: `AssertionError` when the test has none."""
        self.requests.append(request)
        if callable(self._answers):
            return self._answers(request)
        if str(request) not in self._answers:
            example = "[...]" if request.verb == "list" else "{...}"
            raise AssertionError(f'no answer to "{request}" is given: write answers={{"{request}": {example}}}')
        return self._answers[str(request)]


class AnsweringClient(Client):
    """A client that gets its answers from a test, and sends only requests that the rules of `served` allow."""

    def __init__(self, answers: AnyAnswers, *, served: Servable | None, group: str = "") -> None:
        super().__init__(cast("Any", None), user_agent="test", group=group)
        self.answers = answers if isinstance(answers, Answers) else Answers(answers)
        self._served = served
        self._failures: list[AssertionError] = []

    async def exchange(self, request: ApiRequest, *, ends: float | None = None) -> Answer:  # noqa: ARG002  as its base
        try:
            with self.requests.under_way(request.method, request.path, request.query) as measured:
                answer = _answered(self.answers.reply(_read(request)), request)
                measured.answered(answer.status)
            self._check_permission(request, answer.status)
        except AssertionError as failure:
            self._failures.append(failure)
            raise
        return answer

    def check(self) -> None:
        """Fail the test for an error that a handler caught. Raises: `AssertionError`."""
        for failure in self._failures:
            raise failure

    @property
    def granted(self) -> dict[str, list[Resource]]:
        """The rules that the manifest grants to an operator with `served` alone."""
        parts = [] if self._served is None else [self._served]
        operator = Operator(name="test", group=self.group or "example.com", controllers=parts, steps=default_steps())
        return grants(operator, namespace=operator.name)

    def _check_permission(self, request: ApiRequest, status: int) -> None:
        if self._served is None:
            return
        recorder = PermissionRecorder()
        recorder.saw(request.method, request.path, request.query, status)
        for rule in (rule for rules in recorder.compared_with(self.granted).missing.values() for rule in rules):
            name = getattr(self._served, "__name__", None) or getattr(self._served, "id", "")
            raise AssertionError(f'{name} may not send "{_read(request)}": add to its `rules`: {json.dumps(rule)}')


def _read(request: ApiRequest) -> SentRequest:
    info = request_info(request.method, request.path, request.query)
    body: Any = None if request.body is None else msgspec.json.decode(request.body)
    resource = f"{info.resource}.{info.group}" if info.group else info.resource
    name = info.name or (body["metadata"].get("name", "") if info.verb == "create" else "")
    resource = f"{resource}/{info.subresource}" if info.subresource else resource
    namespace = "" if (info.group, info.resource) == ("", "namespaces") else info.namespace
    return SentRequest(info.verb, resource, Key(namespace, name), body, request.query)


def _answered(reply: Any, request: ApiRequest) -> Answer:
    """The answer as it comes over the network. Raises: `reply`, if it is an error that is none of the API server's."""
    status, body = 201 if request.method == "POST" else 200, request.body or b"{}"
    if isinstance(reply, Exception):
        raise reply
    if isinstance(reply, type):
        if reply not in STATUSES:
            raise reply
        # A 404 without a reason is the answer of a server without the kind.
        status, reply = STATUSES[reply], {"reason": "" if reply is NotServed else reply.__name__}
    elif isinstance(reply, Sequence):
        reply = {"metadata": {"resourceVersion": "1"}, "items": reply}
    return Answer(status, {}, body if reply is None else msgspec.json.encode(reply))
