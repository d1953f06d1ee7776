"""Faults: an HTTP proxy in front of the real API server that fails as networks and servers do, on request.

    with FaultProxy(sandbox) as proxy:
        operator = start(kubeconfig=proxy.kubeconfig)
        proxy.add(Fault(Respond(503), on=is_write, times=3))

The operator under test talks to the proxy, the test itself to the API server. Each request is logged, so a test can
also say how many there may be. A fault applies to the requests that it is `on`, as often as `times` says.

It runs in a thread of its own, so it serves tests of any kind.
"""

from __future__ import annotations

import asyncio
import io
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol, Self, TypeAlias

import aiohttp
from aiohttp import web
from yarl import URL

from ..sandbox.kubeconfig import kubeconfig
from .lossy import Coalesce, Late, Lose

# Connections that a proxy must not pass on (RFC 9110, 7.6.1), and lengths that change with re-framing.
HOP_BY_HOP: Final = frozenset(
    {"connection", "keep-alive", "transfer-encoding", "te", "upgrade", "host", "content-length"}
)
REVIEWS: Final = "/apis/authorization.k8s.io/"
STOP_SECONDS: Final = 5.0
# A socket that was shut down is closed in the loop's next rounds.
HANG_UP_SECONDS: Final = 2.0
LOOK_SECONDS: Final = 0.01


class Upstream(Protocol):
    """The server behind a proxy: a `Sandbox`, or anything else with an address, a token and a folder for files."""

    url: str
    token: str
    ca_file: Path
    folder: Path


@dataclass(slots=True)
class ProxiedRequest:
    """One request as the proxy saw it."""

    method: str
    path: str
    query: Mapping[str, str]
    time: float
    """Monotonic seconds."""

    status: int | None = None
    """The status of the answer, from the API server or a fault; None while and where there is no answer."""

    body: bytes = b""
    """The object in a POST, whose path does not name it; empty for other requests."""

    manager: str = ""
    """The field manager of a write, by the rule of the API server: the parameter, or else the name of the client."""

    ended: float | None = None
    """Monotonic seconds when its answer, or its connection, ended; None before."""

    @property
    def is_watch(self) -> bool:
        """Whether it is a watch: a list with `watch=true`."""
        return self.query.get("watch") == "true"


Predicate: TypeAlias = Callable[[ProxiedRequest], bool]


def is_any(request: ProxiedRequest) -> bool:  # noqa: ARG001  a predicate takes the request
    """Every request."""
    return True


def is_watch(request: ProxiedRequest) -> bool:
    """A watch of any kind."""
    return request.is_watch


def is_list(request: ProxiedRequest) -> bool:
    """A list or a read of any kind."""
    return request.method == "GET" and not request.is_watch


def is_write(request: ProxiedRequest) -> bool:
    """Anything that changes something. Reviews of permissions are sent by POST, and change nothing."""
    return request.method in ("POST", "PUT", "PATCH", "DELETE") and not request.path.startswith(REVIEWS)


# --- faults of a request ---


def _nothing() -> None:
    """Do nothing before a reset, the default."""


@dataclass(frozen=True, slots=True)
class Drop:
    """The connection is reset before the API server gets the request; `first` is called before that."""

    first: Callable[[], None] = _nothing


@dataclass(frozen=True, slots=True)
class CommitThenDrop:
    """The API server carries the request out; then `first` is called, and the connection reset instead of an answer."""

    first: Callable[[], None] = _nothing


@dataclass(frozen=True, slots=True)
class Respond:
    """The proxy answers by itself. `body` is JSON, text, HTML, or anything else."""

    code: int
    body: bytes = b""
    content_type: str = "text/plain"
    retry_after: str | None = None


@dataclass(frozen=True, slots=True)
class CommitThenRespond:
    """The API server carries the request out; the client gets this answer instead of the real one."""

    answer: Respond


@dataclass(frozen=True, slots=True)
class Hold:
    """The request waits until the event is set, and then continues."""

    until: threading.Event = field(default_factory=threading.Event)


@dataclass(frozen=True, slots=True)
class Slow:
    """The request waits for so many seconds, and then continues."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Cut:
    """After so many lines of a watch comes half of the next one, and a reset."""

    after_lines: int = 0


@dataclass(frozen=True, slots=True)
class Stall:
    """After so many lines a watch sends nothing more. Its connection stays open; with `end`, for as long as the API
    server's does."""

    after_lines: int = 0
    end: bool = False


@dataclass(frozen=True, slots=True)
class Inject:
    """These bytes come before the lines of a watch. With `end` the stream ends after them."""

    data: bytes
    end: bool = False


@dataclass(frozen=True, slots=True)
class Past:
    """A list is answered as it was at this resource version. The API server has the last five minutes, and a watch
    from there shows all changes since."""

    version: str


@dataclass(frozen=True, slots=True)
class Notify:
    """`first` is called, and the request continues as usual."""

    first: Callable[[], None]


OfRequest: TypeAlias = Drop | CommitThenDrop | CommitThenRespond | Respond | Hold | Slow | Past | Notify
OfWatch: TypeAlias = Cut | Stall | Inject | Late | Coalesce | Lose
Effect: TypeAlias = OfRequest | OfWatch


@dataclass(slots=True)
class Fault:
    """An effect, on which requests, and how often (None: until it is removed)."""

    effect: Effect
    on: Predicate = is_any
    times: int | None = 1
    hits: int = 0

    def takes(self, request: ProxiedRequest) -> bool:
        """Whether it applies to `request`; counts if so."""
        if (self.times is not None and self.hits >= self.times) or not self.on(request):
            return False
        self.hits += 1
        return True


class FaultProxy:
    """See the module. `requests` is the log; `kubeconfig` leads to the proxy, which asks as `token` (the admin)."""

    def __init__(self, sandbox: Upstream, *, token: str | None = None) -> None:
        self._sandbox = sandbox
        self._token = token or sandbox.token
        self._faults: list[Fault] = []
        self.requests: list[ProxiedRequest] = []
        self.url = ""
        self.kubeconfig = Path()
        self._loop: asyncio.AbstractEventLoop
        self._stop: asyncio.Event
        self._upstream: aiohttp.ClientSession
        self._thread: threading.Thread
        self._open: dict[int, tuple[web.Request, ProxiedRequest]] = {}

    # --- used by tests ---

    def add(self, fault: Fault) -> Fault:
        """From now on, until its times are over or it is removed; the first one that fits a request applies."""
        self._faults.append(fault)
        return fault

    def remove(self, fault: Fault) -> None:
        """Harmless when it is not there."""
        self._faults = [each for each in self._faults if each is not fault]

    def clear(self) -> None:
        """Remove all faults, and begin the log again."""
        self._faults, self.requests = [], []

    def cut_all(self, on: Predicate = is_any) -> None:
        """Reset every connection that is open now, of the requests that `on` names (default: all)."""
        self._loop.call_soon_threadsafe(lambda: [_reset(each) for each, seen in self._open.values() if on(seen)])

    def count(self, on: Predicate, *, since: float = 0.0) -> int:
        """How many requests there were (since a monotonic time)."""
        return sum(1 for request in list(self.requests) if request.time >= since and on(request))

    # --- life ---

    def __enter__(self) -> Self:
        started: Future[int] = Future()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve(started)), name="fault proxy", daemon=True
        )
        self._thread.start()
        self.url = f"http://127.0.0.1:{started.result(STOP_SECONDS)}"
        self.kubeconfig = self._sandbox.folder / f"proxy-{id(self)}.kubeconfig"
        text = kubeconfig(url=self.url, ca=b"", user="proxy", token="none")  # noqa: S106  the proxy has its own
        self.kubeconfig.write_text(text, encoding="utf-8")
        return self

    def __exit__(self, *_: object) -> None:
        self.cut_all()
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(STOP_SECONDS)

    async def _serve(self, started: Future[int]) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        context = ssl.create_default_context(cafile=self._sandbox.ca_file)
        sockets: list[socket.socket] = []

        def upstream_socket(address: tuple[Any, ...]) -> socket.socket:
            family, kind, protocol, *_ = address
            sockets.append(socket.socket(family, kind, protocol))
            return sockets[-1]

        connector = aiohttp.TCPConnector(limit=0, ssl=context, socket_factory=upstream_socket)
        timeout = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout, auto_decompress=False) as self._upstream:
            app = web.Application(client_max_size=64 * 1024 * 1024)
            app.router.add_route("*", "/{path:.*}", self._handle)
            runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
            await runner.setup()
            try:
                listener = socket.create_server(("127.0.0.1", 0))
                await web.SockSite(runner, listener).start()
                started.set_result(listener.getsockname()[1])
                await self._stop.wait()
                # asyncio loses a connection that it has accepted but not yet set up when its server closes. So accept
                # nothing more, and close a few turns of the loop later.
                self._loop.remove_reader(listener)
                await asyncio.sleep(LOOK_SECONDS)
            finally:
                await runner.cleanup()
                await connector.close(abort_ssl=True)
                await _hung_up(sockets)

    # --- one request ---

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        seen = ProxiedRequest(request.method, request.path, dict(request.query), time.monotonic())
        seen.manager = request.query.get("fieldManager") or request.headers.get("User-Agent", "").partition("/")[0]
        self.requests.append(seen)
        self._open[id(request)] = request, seen
        try:
            if request.method == "POST":
                seen.body = await request.read()
            fault = next((each for each in list(self._faults) if each.takes(seen)), None)
            return await self._answer(request, seen, fault.effect if fault is not None else None)
        except (aiohttp.ClientError, OSError):
            # The API server is down: its clients see a refused or broken connection.
            return _reset(request)
        finally:
            del self._open[id(request)]
            seen.ended = time.monotonic()

    async def _answer(self, request: web.Request, seen: ProxiedRequest, effect: Effect | None) -> web.StreamResponse:
        match effect:
            case Drop(first):
                first()
                return _reset(request)
            case Respond():
                return _responded(seen, effect)
            case Notify(first):
                first()
            case Slow(seconds):
                await asyncio.sleep(seconds)
            case Hold(until):
                # Looked at, not waited for in a thread: one that is never set would outlive the proxy.
                while not until.is_set():  # noqa: ASYNC110
                    await asyncio.sleep(LOOK_SECONDS)
        return await self._sent_on(request, seen, effect)

    async def _sent_on(self, request: web.Request, seen: ProxiedRequest, effect: Effect | None) -> web.StreamResponse:
        headers = {name: value for name, value in request.headers.items() if name.lower() not in HOP_BY_HOP}
        headers["Authorization"] = f"Bearer {self._token}"
        url = URL(self._sandbox.url + request.raw_path, encoded=True)
        if isinstance(effect, Past) and "continue" not in request.query:  # a later page is of the version of the first
            url = url.update_query(resourceVersion=effect.version, resourceVersionMatch="Exact")
        body = await request.read()
        # aiohttp warns of bytes that are longer than 1 MiB, and warnings may be errors where tests run.
        data = io.BytesIO(body) if body else None
        async with self._upstream.request(request.method, url, headers=headers, data=data) as answer:
            seen.status = answer.status
            try:
                if isinstance(effect, CommitThenDrop):
                    await answer.read()
                    effect.first()
                    return _reset(request)
                if isinstance(effect, CommitThenRespond):
                    await answer.read()
                    return _responded(seen, effect.answer)
                return await _passed_back(request, answer, effect)
            finally:
                # Not read to its end: the connection is of no more use, and a TLS farewell could outlive the loop.
                if answer.connection is not None and answer.connection.transport is not None:
                    answer.connection.transport.abort()


def _responded(seen: ProxiedRequest, effect: Respond) -> web.Response:
    seen.status = effect.code
    headers = {"Content-Type": effect.content_type}
    if effect.retry_after is not None:
        headers["Retry-After"] = effect.retry_after
    return web.Response(status=effect.code, body=effect.body, headers=headers)


async def _passed_back(
    request: web.Request, answer: aiohttp.ClientResponse, effect: Effect | None
) -> web.StreamResponse:
    """The answer as it comes, changed by `effect`."""
    headers = {name: value for name, value in answer.headers.items() if name.lower() not in HOP_BY_HOP}
    response = web.StreamResponse(status=answer.status, headers=headers)
    await response.prepare(request)
    match effect:
        case Inject(data, end):
            await response.write(data)
            if end:
                return response
        case Cut(left) | Stall(left):
            async for line in answer.content:
                if left:
                    await response.write(line)
                    left -= 1
                elif isinstance(effect, Cut):
                    await response.write(line[: len(line) // 2])
                    return _reset(request)
                # A stalled stream reads on and sends nothing, until the client or the API server gives up.
            if isinstance(effect, Stall) and not effect.end:
                await asyncio.Event().wait()
        case Late() | Coalesce() | Lose():
            await effect.pass_back(answer.content, response.write)
            return response
    async for chunk in answer.content.iter_any():
        await response.write(chunk)
    return response


async def _hung_up(sockets: list[socket.socket]) -> None:
    """End the connections that still say farewell over TLS, and return when their sockets are closed.

    The loop ends afterwards: open connections are reported later, in the middle of some other test.
    """
    for each in sockets:
        with suppress(OSError):  # closed meanwhile, or by the peer
            each.shutdown(socket.SHUT_RDWR)
    with suppress(TimeoutError):
        async with asyncio.timeout(HANG_UP_SECONDS):
            while any(each.fileno() >= 0 for each in sockets):  # noqa: ASYNC110  asyncio reports nothing
                await asyncio.sleep(LOOK_SECONDS)


def _reset(request: web.Request) -> web.Response:
    """End the connection with a reset, as a crashed peer or an impatient middlebox does."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=500)
