"""Answers: calls the methods of one `Admission` for the reviews that the API server sends.

There is an answer in time, and only a handler that returned or raised `Denied` can change or refuse a write. Failures
are answered by an HTTP status, so that the failure policy decides. Users read its text, so it quotes nothing.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from http import HTTPStatus
from typing import Any, Final, TypeAlias

import msgspec

from ..calling import HandlerTimeout, call, report, stopping
from ..client.api import Client
from ..core.fields import digest
from ..resource import Key, Resource
from ..telemetry.logging import about
from .admission import Admission
from .patch import patch
from .review import API_VERSION, AdmissionRequest, Denied, NotAReview, Operation, Review, read

# For what the API server and we do besides calling the handler.
SPARE_SECONDS: Final = 0.5
# Of one admission: `def` handlers that read from the API server in 50 ms answer 640 reviews a second with these.
THREADS: Final = 32
# Not that of handlers: a replica that lost its lease waits for those, and reviews go on there.
THREAD: Final = "webhook"
# Smaller ones hold the event loop for less than 0.1 s.
LARGE_BYTES: Final = 16 * 2**10
OUTCOMES: Final = ("allowed", "denied", "error", "timeout")

Answer: TypeAlias = tuple[HTTPStatus, bytes]
"""200 and JSON, or an error and its text."""

log = logging.getLogger("bonny.webhooks")


class Reviewer:
    """Answers the reviews of `admission`; users read its name and that of the `operator`, which has this `group`."""

    def __init__(self, admission: Admission[Any], client: Client | None, operator: str, group: str) -> None:
        self._admission = admission
        self._name = type(admission).__name__
        self._operator, self._group = operator, group
        self._client = client
        self._handlers: dict[tuple[str, Operation], Callable[[Review[Any]], object]] = {
            (admission.path(action), operation): getattr(admission, name)
            for (action, operation), name in admission.handlers().items()
        }
        self.paths: Final = tuple(dict.fromkeys(path for path, _ in self._handlers))
        """One for each action of which the class has a handler."""

        self.reviews = Counter({(*called, outcome): 0 for called in self._handlers for outcome in OUTCOMES})
        """Reviews by path, operation and outcome; all that can be are there from the start."""

        self._slots = asyncio.Semaphore(THREADS)

    async def answer(self, path: str, body: bytes) -> Answer:
        """Answer the review `body`, sent to `path`. Called in a task that does nothing else: its context changes."""
        try:
            request = read(body)
        except NotAReview as error:
            return HTTPStatus.BAD_REQUEST, str(error).encode()
        seconds = self._admission.timeout - SPARE_SECONDS
        key = Key(request.namespace, request.name or "(generated)")
        fields = {"webhook": self._name, "operation": request.operation, "object": str(key)}
        status, outcome = HTTPStatus.INTERNAL_SERVER_ERROR, "error"
        about(**fields)
        connection = asyncio.current_task()
        stopping.set(lambda: connection is not None and connection.cancelling() > 0)
        try:
            # In a task of its own: a handler that cancels its task does not cancel that of the connection.
            outcome, answer = await asyncio.create_task(self._respond(path, body, request, seconds))
            status = HTTPStatus.OK
        except Exception as error:  # noqa: BLE001  the failure policy decides about the write
            text = "failed"
            if isinstance(error, HandlerTimeout):
                outcome, text = "timeout", f"did not answer within {seconds:g} s"
            report(log.warning, "webhook failed", error, fields)
            answer = f"{self._name} of {self._operator} {text}: see the log of the operator".encode()
        finally:
            self.reviews[path, request.operation, outcome] += 1
        return status, answer

    async def _respond(self, path: str, body: bytes, request: AdmissionRequest, seconds: float) -> tuple[str, bytes]:
        """The outcome and the AdmissionReview. Raises: what the handler raises, except for a refusal."""
        kind = request.kind
        version = self._admission.version_for(kind.group, kind.version, kind.kind, default_group=self._group)
        review, operations = Review[Any](request, version, self._client), []
        came = digest(review.resource) if path == self._admission.path("mutate") else None
        handler = self._handlers.get((path, request.operation))
        try:
            if handler is not None:
                await self._call(handler, review, seconds)
            if came is not None:
                operations = await aside(body, partial(_patched, review, came, body))
        except Denied as denied:
            review.denials.append(denied)
        except Exception as error:
            # The API server checks the schema after `default`, and says what does not fit.
            if error is not review.misfit or came is None:
                raise
        return "denied" if review.denials else "allowed", _response(request, review, operations)

    async def _call(self, handler: Callable[[Review[Any]], object], review: Review[Any], seconds: float) -> None:
        if inspect.iscoroutinefunction(handler):
            await call(handler, review, seconds=seconds)
            return
        due = asyncio.get_running_loop().time() + seconds
        try:
            async with asyncio.timeout(seconds):
                await self._slots.acquire()
        except TimeoutError:
            raise HandlerTimeout(seconds, None) from None
        with ExitStack() as slot:
            slot.callback(self._slots.release)
            try:
                await call(handler, review, seconds=due - asyncio.get_running_loop().time(), thread=THREAD)
            except HandlerTimeout as error:
                if error.thread is not None:  # it cannot be stopped: its slot stays taken until it returns
                    slot.pop_all()
                    error.thread.add_done_callback(self._returned)
                raise

    def _returned(self, thread: asyncio.Future[object]) -> None:
        thread.exception()  # asyncio would log an error that was not looked at
        self._slots.release()


async def aside(body: bytes, work: Callable[[], Any]) -> Any:
    """The result of `work` on `body`, from a thread if it is large."""
    return await call(work, name=THREAD, thread=THREAD) if len(body) > LARGE_BYTES else work()


def _patched(review: Review[Any], came: bytes, body: bytes) -> list[Resource]:
    """The patch; `body`, whose object has the digest `came`, is decoded again if that changed."""
    return patch(review, review.resource if digest(review.resource) == came else read(body).object or {})


def _response(request: AdmissionRequest, review: Review[Any], operations: list[Resource]) -> bytes:
    """Refuses the write if `review` has denials, else allows it with the JSON patch `operations`."""
    answer: Resource = {"uid": request.uid, "allowed": not review.denials}
    if review.denials:
        answer["status"] = _status(request, review.denials)
    elif operations:
        answer |= {"patchType": "JSONPatch", "patch": msgspec.json.encode(operations)}  # bytes become base64
    answer |= {"warnings": review.warnings, "auditAnnotations": review.notes}
    return msgspec.json.encode({"apiVersion": API_VERSION, "kind": "AdmissionReview", "response": answer})


def _status(request: AdmissionRequest, denials: list[Denied]) -> Resource:
    """A Status that kubectl prints as it prints errors of the schema: a line for each of the causes."""
    if any(denied.forbidden for denied in denials):
        return {"code": 403, "reason": "Forbidden", "message": "; ".join(denied.message for denied in denials)}
    kind, name = request.kind.kind, request.name
    causes = [
        {"reason": "FieldValueInvalid", "field": denied.field or kind, "message": "Invalid value: " + denied.message}
        for denied in denials
    ]
    message = f'{kind} "{name}" is invalid: ' + "; ".join(f"{cause['field']}: {cause['message']}" for cause in causes)
    details = {"group": request.kind.group, "kind": kind, "name": name, "causes": causes}
    return {"code": 422, "reason": "Invalid", "message": message, "details": details}
