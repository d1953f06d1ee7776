"""App: the ASGI app of the paths that the API server calls.

You need it to serve webhooks (`serving`), or to post a review in a test. How long a request may take to
arrive is up to the server.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ..client.api import Client
from ..core.meters import Histogram
from .admission import Admission
from .answers import Answer, Reviewer
from .conversion import Converter
from .memory import MOST_MEMORY, Memory, needed
from .names import CONVERT

if TYPE_CHECKING:
    from ..operator import Operator

# A review has 3 MiB at most, twice.
MOST_BYTES: Final = 7 * 2**20
# With this code the API server shows only the text of a Status.
TOO_LARGE: Final = (
    b'{"apiVersion":"v1","kind":"Status","status":"Failure","code":413,"message":"the review of %d KiB is too large: '
    b'it may have %d KiB, and need %d MiB of memory"}'
)

Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
Route: TypeAlias = Callable[[bytes], Coroutine[Any, Any, Answer]]
"""Answers the body of a request."""


class WebhookApp:
    """Answers for all webhooks of `operator`; handlers read with `client`. Guarantees: an answer to every request."""

    def __init__(self, operator: Operator, client: Client | None) -> None:
        self.reviewers: list[Reviewer] = [
            Reviewer(each(), client, operator.name, operator.group) for each in operator.of(Admission)
        ]
        self.routes: dict[str, Route] = {
            path: partial(reviewer.answer, path) for reviewer in self.reviewers for path in reviewer.paths
        }
        """By path."""

        self.converter: Converter | None = Converter(operator.crds, operator.group) if operator.converted else None
        if self.converter is not None:
            self.routes[CONVERT] = self.converter.answer

        self.seconds: dict[str, Histogram] = {path: Histogram() for path in self.routes}
        """Time from the last byte of a request to its answer, by path."""

        self._memory = Memory()
        self.answers: Counter[tuple[str, int]] = Counter({(path, int(HTTPStatus.OK)): 0 for path in self.routes})
        """Answers by path and status code."""

    async def __call__(self, request: Message, receive: Receive, send: Send) -> None:
        """Answer one request, as ASGI 3 has it."""
        body, more = bytearray(), True
        while more and len(body) <= MOST_BYTES:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
        status, answer = await self._answer(request["path"], body)
        content_type = b"application/json" if answer[:1] == b"{" else b"text/plain; charset=utf-8"
        headers = [(b"content-length", b"%d" % len(answer)), (b"content-type", content_type)]
        await send({"type": "http.response.start", "status": int(status), "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    async def _answer(self, path: str, body: Any) -> Answer:
        if path not in self.routes:
            return HTTPStatus.NOT_FOUND, b"404: Not Found"
        began, memory = time.monotonic(), needed(body)
        if len(body) > MOST_BYTES or (memory > MOST_MEMORY and path != CONVERT):
            why = TOO_LARGE % (len(body) >> 10, MOST_BYTES >> 10, MOST_MEMORY >> 20)
            answer = HTTPStatus.REQUEST_ENTITY_TOO_LARGE, why
        else:
            async with self._memory.taken(min(memory, MOST_MEMORY)):
                answer = await self.routes[path](body)
        self.seconds[path].observe(time.monotonic() - began)
        self.answers[path, int(answer[0])] += 1
        return answer
