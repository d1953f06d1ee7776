"""Client: requests to the API server as methods, each described by a `Kind` and a name.

You need it in handlers that read or write beyond their descendants: `axn.client`.
You do not need it to create what an object owns: register descendants. To read what the operator watches, use
`axn.observed`, which asks nothing.

A kind is a `Kind`, or the `Version` class of your own. An object is a `Key` or `(namespace, name)`; where it has no
namespace, its name. Errors are subclasses of `ApiError` in `bonny.client`. The permissions that a method needs go into
the `rules` of the controller.

Guarantees: every request has a deadline; its time does not run while it waits because `IN_FLIGHT` others are under way
(streams do not count). After a 401 the credentials are read again and the request is sent once more;
after a certificate that is not trusted they are read again, too. A 429 is waited out within the deadline. Warnings of
the API server are logged, each text once. Of the writes without an answer only `create` is sent again; for the
others the key that caused the request is tried again. A client with a fence starts no write once the time of the fence
is over, and cancels requests that still run then.
"""

from __future__ import annotations

import asyncio
import logging
import random
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from typing import Any, Final, Protocol, TypeAlias

import msgspec

from ..core.objects import decode_failure, decode_whole
from ..core.selector import requirements_of
from ..errors import OptionError, UsageError
from ..kinds import Kind
from ..naming import is_object_name
from ..resource import Key, Resource, has_all_of, key_of, owners_of, printable
from .config import Cluster, Connection
from .errors import LEFT_OUT, NotLeading, Unreachable, refusal
from .http.connection import FOREVER
from .metering import Requests
from .pages import pages
from .request import ApiRequest, path_of, retry_after, target_of
from .transport import Answer, Headers, StreamAnswer, Transport

log = logging.getLogger("bonny.client.api")

# The API server's own limit for non-watch requests is 60 s; half of it frees the worker sooner.
REQUEST_SECONDS: Final = 30.0
# Requests at a time, each a connection of about 120 KiB: a controller whose writes hang leaves room for others.
IN_FLIGHT: Final = 200
# A broken connection recovers within moments, or takes longer than a handler should wait.
CREATE_TRIES: Final = 3
CREATE_SECONDS: Final = 0.5
# After a certificate was not trusted, the authority is read again, not more often than this.
DISTRUSTED_SECONDS: Final = 10.0
# The server's constant advice under overload is 1 s (apiserver, priority and fairness).
THROTTLED_SECONDS: Final = 1.0

# Deprecations and admission policies: far fewer than this, unless a text names each object.
WARNINGS_KEPT: Final = 1_000
# Warnings of names alone. Any other one is the text of a policy or a webhook, which may quote the object.
OF_NAMES: Final = re.compile(
    r"[\w./-]+ \w+ is deprecated(?: in v[\d.]+\+(?:, unavailable in v[\d.]+\+)?)?(?:; use [\w./-]+ \w+)?|"
    r'unknown field "[\w.$/\[\]-]+"',
    re.ASCII,
)
WARNING: Final = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')

# Not printable in YAML, or a line break there (YAML 1.2, sections 5.1 and 5.4).
UNLIKE_JSON: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")

APPLY: Final = "application/apply-patch+yaml"
JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
JSON: Final = "application/json"
METHODS: Final = {"get": "GET", "update": "PUT", "patch": "PATCH", "delete": "DELETE"}


class HasKind(Protocol):
    """A `Version` class."""

    def as_kind(self, default_group: str, /) -> Kind:
        """Its kind; `default_group` is the operator's group."""


AnyKind: TypeAlias = Kind | HasKind
"""A `Kind`, or a `Version` class."""

Name: TypeAlias = str | tuple[str, str]
"""The name of an object, or (namespace, name), such as a `Key`."""


def _check_name(verb: str, kind: Kind, key: Key, subresource: str = "") -> None:
    """Raises: `OptionError` for what cannot be a name: an empty one would stand for all objects of the kind."""
    optional = (("namespace", key.namespace), ("subresource", subresource))
    for noun, text in (("name", key.name), *(each for each in optional if each[1])):
        if not is_object_name(text):
            raise OptionError(f"cannot {verb} {kind.resource}: {str(text)[:60]!r} is not the {noun} of an object")


class Client:
    """The API server of one cluster, as one identity. Create it within a running event loop; `close` it."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        user_agent: str,
        timeout: float = REQUEST_SECONDS,
        fence: Callable[[], float] | None = None,
        group: str = "",
    ) -> None:
        """`fence` returns the seconds for which this process may still write (`bonny.run.leader`); None: for ever.

        `group` is the API group of `Version` classes that name none.
        """
        self.cluster = cluster
        self._name = user_agent.partition("/")[0]
        self.group = group
        self.requests = Requests()
        self._timeout = timeout
        self._fence = fence
        self._transport = Transport(user_agent=user_agent)
        self._connection: Connection | None = None
        self._read_at = float("-inf")
        self._reading: asyncio.Task[Connection | UsageError] | None = None
        self._warnings: set[str] = set()
        self._slots = asyncio.Semaphore(IN_FLIGHT)

    async def close(self) -> None:
        """For the runtime: close all connections."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait({self._reading})
        await self._transport.close()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # --- called by the runtime ---

    async def connection(self, *, renew: bool = False, ends: float | None = None) -> Connection:
        """The current address and credentials; `renew` reads them again, until `ends` (monotonic seconds).

        Guarantees: concurrent callers share one read. When a periodic read fails, the previous credentials stay in
        use: the server decides whether they are still valid.
        Raises: `UsageError`; `Unreachable` when the client is closed meanwhile, or they are not read in time.
        """
        current = self._connection
        age = time.monotonic() - self._read_at
        distrusted = self._transport.distrusted_at > self._read_at and age > DISTRUSTED_SECONDS
        if current is not None and not (renew or distrusted) and age <= current.max_age:
            return current
        if self._reading is None or self._reading.done():
            self._reading = asyncio.create_task(self._read())
        reading = self._reading
        await asyncio.wait({reading}, timeout=None if ends is None else ends - time.monotonic())
        if reading.cancelled():
            raise Unreachable("the client was closed")
        if not reading.done():
            raise Unreachable(f"the credentials of {self.cluster.source} could not be read in time")
        result = reading.result()
        if isinstance(result, Connection):
            return result
        if renew or current is None:
            raise UsageError(str(result)) from result
        return current

    async def _read(self) -> Connection | UsageError:
        """Runs as a task of its own: callers may give up while a person still logs in."""
        try:
            self._connection = await self.cluster.connect()
        except UsageError as error:
            return error
        finally:
            self._read_at = time.monotonic()
        self.requests.host = self._connection.server.partition("://")[2].rpartition("@")[2]
        return self._connection

    # --- reading ---

    async def get(self, kind: AnyKind, name: Name, *, namespace: str | None = None, subresource: str = "") -> Resource:
        """One object, uncached. `subresource="scale"` reads that of the object.

        Raises: `NotFound` and the other `ApiError`s; `InvalidObject` when it is nested too deeply. RBAC: get.
        """
        key = (namespace or "", name) if isinstance(name, str) else name
        return await self._object("get", kind, key, subresource=subresource)

    async def list(self, kind: AnyKind, *, namespace: str | None = None, label_selector: str = "") -> list[Resource]:
        """All objects of a kind, or of one namespace, uncached and page by page. A `Kind` may have selectors, too.

        `label_selector` as in `axn.children`; default: that of the `Kind`.
        Raises: `ApiError`; `OptionError` for a malformed selector, and for an empty namespace. RBAC: list.
        """
        kind = self._kind(kind)
        if namespace is not None and not is_object_name(namespace):
            raise OptionError(
                f"cannot list {kind.resource}: {str(namespace)[:60]!r} is not a namespace; None stands for all"
            )
        requirements_of(label_selector)
        selected = replace(kind, label_selector=label_selector or kind.label_selector)
        resources: list[Resource] = []
        async for page in pages(self, selected, namespace=namespace):
            resources += ({"apiVersion": kind.api_version, "kind": kind.kind, **item.decode()} for item in page.items)
        return resources

    # --- writing ---

    async def apply(
        self,
        kind: AnyKind,
        resource: Mapping[str, Any],
        *,
        manager: str = "",
        force: bool = True,
        subresource: str = "",
        dry_run: bool = False,
    ) -> tuple[Resource, bool]:
        """Server-side apply of `resource`; returns the stored object and whether it was created.

        `manager` owns the fields; default: the operator's name. Without `force`, fields of other managers are not
        taken over. With `dry_run` the server returns the result and stores nothing.
        Raises: `Conflict` when another manager owns a field and `force` is off, or a precondition does not hold.
        RBAC: patch, and create where it may not exist yet.
        """
        kind = self._kind(kind)
        key = key_of(resource)
        _check_name("apply", kind, key, subresource)
        query = {"fieldManager": manager or self._name, "force": str(force).lower(), "dryRun": "All" if dry_run else ""}
        path = path_of(kind, key.namespace or None, key.name, subresource)
        target = f"{kind.resource}/{subresource} {key}" if subresource else f"{kind.resource} {key}"
        with _named("apply", target):
            answer = await self.exchange(ApiRequest("PATCH", path, query, {"Content-Type": APPLY}, _as_yaml(resource)))
        return self._decoded(answer, "apply", target), answer.status == 201

    async def create(self, kind: AnyKind, resource: Mapping[str, Any], *, subresource: str = "") -> Resource:
        """POST `resource`. Descendants of a controller are created by `apply`, never by this.

        `subresource="eviction"` evicts the pod that `resource`, an Eviction, names.

        Without an answer the request is sent again, three times in all. The object may exist by then: it counts as
        created when it names an owner and holds everything that was sent, and is a `Conflict` otherwise.
        Does not: repeat objects with only a `generateName`, or subresources; distinguish two clients that create the
        same object for the same owner, so it cannot serve as a lock.
        Raises: `Conflict` when the object exists, and the other `ApiError`s.
        RBAC: create, and get for the repetitions; create of `pods/eviction` for an eviction.
        """
        kind = self._kind(kind)
        ends = time.monotonic() + self._timeout
        metadata = resource["metadata"]
        name, namespace = metadata.get("name", ""), metadata.get("namespace")
        if subresource or name:
            _check_name("create", kind, Key(namespace or "", name), subresource)
        target = printable(f"{kind.resource} {name}".strip())
        path = path_of(kind, namespace, name if subresource else "", subresource)
        request = ApiRequest("POST", path, headers={"Content-Type": JSON}, body=msgspec.json.encode(resource))
        tries = 1 if subresource or not name else CREATE_TRIES
        for number in range(1, tries + 1):
            try:
                with _named("create", target):
                    answer = await self.exchange(request, ends=ends)
                break
            except Unreachable:
                wait = CREATE_SECONDS * (1 + random.random())
                if number == tries or time.monotonic() + wait > ends:
                    raise
                await asyncio.sleep(wait)
        if answer.status == 409 and number > 1 and owners_of(resource):
            current = await self.exchange(ApiRequest("GET", path_of(kind, namespace, name)), ends=ends)
            live = self._decoded(current, "get", target) if current.status == 200 else {}
            if was_made(live, resource):
                return live
        return self._decoded(answer, "create", target)

    async def replace(self, kind: AnyKind, resource: Mapping[str, Any]) -> Resource:
        """PUT `resource`, only if the object still has the resourceVersion in it.

        Raises: `Conflict` when it has another one. RBAC: update.
        """
        return await self._object("update", kind, key_of(resource), JSON, resource)

    async def merge_patch(
        self, kind: AnyKind, key: Name, patch: Mapping[str, Any], *, subresource: str = ""
    ) -> Resource:
        """JSON merge patch (RFC 7386): sets the fields in `patch`, removes the fields that are None in it.

        `subresource="scale"` or `"status"` patches that of the object.
        Raises: `NotFound` and the other `ApiError`s. RBAC: patch.
        """
        return await self._object("patch", kind, key, MERGE_PATCH, patch, subresource=subresource)

    async def json_patch(
        self, kind: AnyKind, key: Name, patch: Sequence[Mapping[str, Any]], *, subresource: str = ""
    ) -> Resource:
        """JSON patch (RFC 6902): a list of operations. Raises: `Invalid` when a `test` fails. RBAC: patch."""
        return await self._object("patch", kind, key, JSON_PATCH, patch, subresource=subresource)

    async def delete(self, kind: AnyKind, key: Name, *, uid: str | None = None, version: str | None = None) -> None:
        """Delete one object, only if it still has the given `uid` and `version`; its children follow it.

        Raises: `Conflict` when they differ, `NotFound` when it is gone. RBAC: delete.
        """
        body: Resource = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}
        body["preconditions"] = {"uid": uid, "resourceVersion": version}  # the server ignores a null
        await self._object("delete", kind, key, JSON, body)

    async def _object(
        self, verb: str, kind: AnyKind, name: Name, content_type: str = "", body: Any = None, *, subresource: str = ""
    ) -> Resource:
        kind, key = self._kind(kind), Key("", name) if isinstance(name, str) else Key(*name)
        _check_name(verb, kind, key, subresource)
        if kind.namespaced != bool(key.namespace):
            wrong = "name its namespace, too" if kind.namespaced else "leave out the namespace: it is in none"
            raise OptionError(f"cannot {verb} {kind.resource} {key}: {wrong}")
        path = path_of(kind, key.namespace, key.name, subresource)
        encoded = None if body is None else msgspec.json.encode(body)
        headers = {"Content-Type": content_type} if body is not None else {}
        with _named(verb, f"{kind.resource} {key}"):
            answer = await self.exchange(ApiRequest(METHODS[verb], path, headers=headers, body=encoded))
        return self._decoded(answer, verb, f"{kind.resource} {key}")

    def _kind(self, kind: AnyKind) -> Kind:
        return kind if isinstance(kind, Kind) else kind.as_kind(self.group)

    # --- called by the runtime ---

    async def exchange(self, request: ApiRequest, *, ends: float | None = None) -> Answer:
        """Send one request and return its answer, whatever the status; `ends` is its deadline (monotonic seconds).

        The time that the request waits for others does not count.

        Raises: `Unreachable`, `UsageError`; `AnswerTooLarge` when the answer has more than `limit_bytes`; `NotLeading`
        when the request is a write and the time of the fence is over, also after a wait.
        """
        ends = time.monotonic() + self._timeout if ends is None else ends
        renewed = False
        while True:
            asked = time.monotonic()
            async with self._slots:
                ends += time.monotonic() - asked
                connection = await self.connection(ends=ends)
                answer = await self._send(connection, request, ends)
            if answer.status == 401 and not renewed:
                renewed = True
                # Another request may have renewed the credentials while this one was under way.
                await self.connection(renew=connection is self._connection, ends=ends)
                continue
            if answer.status == 429:
                # Jitter spreads the requests that were refused together. What is left of the time afterwards has to be
                # enough for an answer: else the caller would hear of a timeout, and not that it was throttled.
                wait = (retry_after(answer.headers) or THROTTLED_SECONDS) * (1 + 0.25 * random.random())
                if time.monotonic() + wait + self._timeout / 10 < ends:
                    self.requests.throttled_seconds += wait
                    await asyncio.sleep(wait)
                    continue
            if "warning" in answer.headers:
                self._warn(answer.headers["warning"])
            return answer

    async def _send(self, connection: Connection, request: ApiRequest, ends: float) -> Answer:
        """Send `request` once. Raises: `NotLeading` when it is a write and the time of the fence is over."""
        left = max(ends - time.monotonic(), 0.1)
        if self._fence is not None and request.method != "GET":
            left = min(left, self._fence())
            if left <= 0.0:
                raise NotLeading(f"{request.method} {request.path} was not sent: this replica does not lead")
        with self.requests.under_way(request.method, request.path, request.query) as measured:
            answer = await self._transport.request(
                connection,
                request.method,
                target_of(request.path, request.query),
                body=request.body,
                headers=request.headers,
                timeout=left,
                limit_bytes=request.limit_bytes,
            )
            measured.answered(answer.status)
        return answer

    def _warn(self, header: str) -> None:
        """Log warnings of the API server, such as deprecated versions, each text once."""
        for quoted in WARNING.findall(header):
            text = quoted.replace('\\"', '"')
            text = text if OF_NAMES.fullmatch(text) else LEFT_OUT
            if text not in self._warnings and len(self._warnings) < WARNINGS_KEPT:
                self._warnings.add(text)
                log.warning("the API server warns", extra={"warning": text})

    @asynccontextmanager
    async def stream(
        self, path: str, *, query: Mapping[str, str], headers: Headers = None, read_timeout: float = FOREVER
    ) -> AsyncIterator[StreamAnswer]:
        """An open answer, whatever its status. Raises: as `Transport.stream`."""
        connection = await self.connection(ends=time.monotonic() + self._timeout)
        target = target_of(path, query)
        with self.requests.under_way("GET", path, query) as request:
            async with self._transport.stream(connection, target, headers=headers, read_timeout=read_timeout) as answer:
                request.answered(answer.status)
                yield answer

    def _decoded(self, answer: Answer, verb: str, resource: str) -> Resource:
        """The decoded answer. Raises: `InvalidObject` when it is nested too deeply, also after a write."""
        if answer.status >= 300:
            failure = decode_failure(answer.status, answer.body, retry_after(answer.headers))
            raise refusal(failure, verb=verb, resource=resource)
        try:
            return decode_whole(answer.body, resource)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            failure = decode_failure(502, b"the answer is not JSON")
            raise refusal(failure, verb=verb, resource=resource) from None


@contextmanager
def _named(verb: str, resource: str) -> Iterator[None]:
    """Name the request in the error of one that is not answered, as in that of a refusal."""
    try:
        yield
    except Unreachable as error:
        raise type(error)(f"cannot {verb} {resource}: {error}") from error


def was_made(live: Resource, sent: Mapping[str, Any]) -> bool:
    """Whether `live` was provably created by an earlier try to create `sent`, and is not being deleted."""
    return has_all_of(live, sent) and not live["metadata"].get("deletionTimestamp")


def _as_yaml(resource: Mapping[str, Any]) -> bytes:
    """JSON that is also valid YAML, which refuses or changes some characters."""
    encoded = msgspec.json.encode(resource)
    if encoded.isascii() and b"\x7f" not in encoded:
        return encoded
    return UNLIKE_JSON.sub(lambda character: f"\\u{ord(character[0]):04x}", encoded.decode()).encode()
