"""Inside: reads the operator's own console (`bonny.console`), at an address or through the API server.

Without an address it is that of this project's `run-local`; else it is looked for in the cluster: the pod of the
leader, by its Lease, and the port in its environment. Requests then go through the API server's port-forward, with the
person's own permissions, and nothing listens on this machine. Each sentence under `problem` is the reason for a missing
answer.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Final
from urllib.parse import urlencode

from aiohttp import ClientError, ClientSession, ClientTimeout

from bonny.client.api import Client
from bonny.client.errors import NotFound
from bonny.errors import ApiError, UsageError
from bonny.kinds import Kind
from bonny.operator import Operator
from bonny.readiness import is_ready
from bonny.resource import Resource, printable
from bonny.run.leader import LEASE

from .forward import CannotForward, Tunnel
from .local import answering

# It answers from memory.
SECONDS: Final = 5.0
URL: Final = "BONNY_CONSOLE_URL"
PORT: Final = "BONNY_CONSOLE_PORT"
TOKEN: Final = "BONNY_CONSOLE_TOKEN"  # noqa: S105  the name of a variable
ADVICE: Final = "docs/how-to/watch-an-operator.md shows how to add it"


class Inside:
    """One operator's console. To be entered; `ask` never raises."""

    async def __aenter__(self) -> Inside:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close all connections."""

    async def ask(self, path: str, **query: str) -> dict[str, Any]:
        """The answer; or, under `problem`, a sentence with the reason why there is none."""
        raise NotImplementedError


class AtAddress(Inside):
    """The console at `url`, on this machine."""

    def __init__(self, url: str, token: str = "") -> None:
        self._url = url.rstrip("/")
        self._headers = _headers(token)

    async def __aenter__(self) -> Inside:
        self._session = ClientSession(headers=self._headers, timeout=ClientTimeout(total=SECONDS))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def ask(self, path: str, **query: str) -> dict[str, Any]:
        try:
            async with self._session.get(f"{self._url}{path}", params=query) as answer:
                return _read(f"the operator at {self._url}", path, answer.status, await answer.read())
        except (ClientError, TimeoutError) as error:
            return {"problem": f"the operator at {self._url} does not answer ({type(error).__name__})"}


class InCluster(Inside):
    """The console of the leader's pod, or of the first pod that is ready."""

    def __init__(self, client: Client, operator: Operator, namespace: str, token: str = "") -> None:
        self._client, self._operator, self._namespace, self._token = client, operator, namespace, token
        self._open: AsyncExitStack | None = None
        self.tunnel: Tunnel | None = None
        """The open connection."""

        self._pod: Resource = {}

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._leave()

    async def ask(self, path: str, **query: str) -> dict[str, Any]:
        target = f"{path}?{urlencode(query)}" if query else path
        for tries_left in (1, 0):
            try:
                tunnel = self.tunnel or await self._find()
                status, body = await tunnel.get(target, _headers(self._token or _setting(self._pod, TOKEN)))
                return _read(f"pod {self._name()}", path, status, body)
            except (CannotForward, ApiError, UsageError, TimeoutError, OSError) as error:
                await self._leave()
                # A connection that was used before may have ended with its pod: another one leads by now.
                if not tries_left or not isinstance(error, CannotForward) or not error.broke:
                    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
                    return {"problem": f"the operator's memory is not shown: {reason}"}
        raise AssertionError

    async def _find(self) -> Tunnel:
        """Raises: `CannotForward`, `ApiError`."""
        self._pod = await self._leader()
        port = _setting(self._pod, PORT)
        if not port.isdecimal() or port == "0":
            raise CannotForward(f"pod {self._name()} has no port in {PORT}: {ADVICE}")
        self._open = AsyncExitStack()
        self.tunnel = await self._open.enter_async_context(Tunnel(self._client, self._pod, int(port), seconds=SECONDS))
        return self.tunnel

    async def _leader(self) -> Resource:
        where = Kind("v1", "Pod", label_selector=f"app.kubernetes.io/name={self._operator.name}")
        pods = await self._client.list(where, namespace=self._namespace)
        ready = [pod for pod in pods if is_ready(pod)]
        if not ready:
            raise CannotForward(f"no pod of {self._operator.name} is ready in the namespace {self._namespace}")
        try:
            lease = await self._client.get(LEASE, self._operator.name, namespace=self._namespace)
        except NotFound:
            return ready[0]
        holder = str((lease.get("spec") or {}).get("holderIdentity") or "").rpartition("_")[0]
        return next((pod for pod in ready if pod["metadata"]["name"] == holder), ready[0])

    def _name(self) -> str:
        return f"{self._namespace}/{(self._pod.get('metadata') or {}).get('name', '')}"

    async def _leave(self) -> None:
        if self._open is not None:
            await self._open.aclose()
        self._open = self.tunnel = None


class Nearby(Inside):
    """The console of the `run-local` of the project at `root` while that works with this cluster; else `otherwise`."""

    def __init__(self, root: Path, client: Client, otherwise: Inside) -> None:
        self._root, self._client, self._otherwise = root, client, otherwise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._otherwise.__aexit__(kind, error, trace)

    async def ask(self, path: str, **query: str) -> dict[str, Any]:
        local = answering(self._root, (await self._client.connection()).server)
        if local is None:
            return await self._otherwise.ask(path, **query)
        async with AtAddress(local.url, local.token) as inside:
            return await inside.ask(path, **query)


def inside_of(url: str, client: Client, operator: Operator, namespace: str, root: Path | None = None) -> Inside:
    """The operator's own console at `url`, or at BONNY_CONSOLE_URL; without an address, that of the `run-local` of the
    project at `root` (None: of no project), or of the leader's pod.

    Raises: `UsageError` for an address that is not of this machine.
    """
    found, token = url or os.environ.get(URL, ""), os.environ.get(TOKEN, "")
    if not found:
        pod = InCluster(client, operator, namespace, token)
        return pod if root is None else Nearby(root, client, pod)
    if not found.startswith(("http://127.0.0.1:", "http://localhost:")):
        raise UsageError(f"the operator's console is {found[:60]!r}: write for example http://127.0.0.1:8090")
    return AtAddress(found, token)


def object_query(operator: Operator, kind: Kind, namespace: str, name: str) -> dict[str, str]:
    """The parameters of /object."""
    named = [
        each.__name__ for each in operator.controllers if any(kind.gvk == k.gvk for k in each.kinds(operator.group))
    ]
    controller = {"controller": named[0]} if named else {}
    return {**controller, "kind": kind.resource, "namespace": namespace, "name": name}


def with_ages(overview: Mapping[str, Any]) -> dict[str, Any]:
    """An answer to /overview, with the ages of its streams in place of the operator's clock."""
    if "problem" in overview:
        return dict(overview)
    clock = overview["clock"]
    return {**overview, "streams": [{**each, **_ages(each, clock)} for each in overview["streams"]]}


def _ages(stream: Mapping[str, Any], clock: float) -> dict[str, Any]:
    error, opened = stream["error"], stream["opened"]
    text = error and f"{error['kind']} ({error['verb']} {error['status']}: {printable(error['message'])})"
    return {
        "silent": clock - stream["last_contact"],
        "opened": None if opened is None else clock - opened,
        "error": text,
        "failing": error and clock - error["since"],
    }


def _headers(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"} if token else {}


def _setting(pod: Resource, name: str) -> str:
    """The value of an environment variable of a pod's containers, where the manifest has it as text."""
    containers = (pod.get("spec") or {}).get("containers") or ()
    found = (each for container in containers for each in container.get("env") or () if each["name"] == name)
    return str(next((each.get("value", "") for each in found), ""))


def _read(who: str, path: str, status: int, body: bytes) -> dict[str, Any]:
    if status != 200:
        return {"problem": f"{who} answers {status} to {path}"}
    try:
        found: Mapping[str, Any] = json.loads(body)
    except ValueError:
        return {"problem": f"{who} does not answer in JSON: its port is another one"}
    return dict(found)
