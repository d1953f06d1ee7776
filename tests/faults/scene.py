"""Scene: an operator behind the proxy, and the API server as the test sees it.

Also the vocabulary of the rows: their objects, the requests that they are about, and the answers of a failing server.
"""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest

from bonny.resource import Resource
from bonny_dev.sandbox import Sandbox
from bonny_dev.testing.faults import (
    Effect,
    Fault,
    FaultProxy,
    Inject,
    ProxiedRequest,
    Respond,
    Stall,
    is_list,
    is_watch,
)
from tests.conftest import Start
from tests.support.processes import OperatorProcess, handwritten

GROUP: Final = "example.com"
WIDGETS: Final = "/apis/example.com/v1/widgets"
# With streams that end themselves after 3 s, and are given up 3 s later.
WATCH_SECONDS: Final = 3.0
# No watch ends by itself within a row that asks for this.
LONG_WATCH_SECONDS: Final = 200.0
# The longest wait of a stream is 30 s; rows stay below that unless they are marked slow.
SEEN_SECONDS: Final = 40.0
# The shortest wait of a stream after trouble (bonny.core.watch).
BACKOFF_SECONDS: Final = 0.8

SLOW: Final = pytest.mark.slow

Predicate: TypeAlias = Callable[[ProxiedRequest], bool]


# --- what a failing server says ---------------------------------------------------------------------------------------


def status_body(code: int, reason: str, message: str) -> bytes:
    """A Status, as the API server refuses with."""
    return json.dumps({"kind": "Respond", "code": code, "reason": reason, "message": message}).encode()


def refused(code: int, reason: str, message: str) -> Respond:
    """The API server's own refusal."""
    return Respond(code, status_body(code, reason, message), "application/json")


GONE: Final = refused(410, "Expired", "too old resource version")
GONE_EVENT: Final = Inject(b'{"type":"ERROR","object":' + GONE.body + b"}\n", end=True)
FORBIDDEN: Final = refused(403, "Forbidden", "no")
HTML: Final = b"<html><body><h1>502 Bad Gateway</h1></body></html>"


# --- which requests ---------------------------------------------------------------------------------------------------


def of_widgets(request: ProxiedRequest) -> bool:
    return request.path == WIDGETS


def watch_of_widgets(request: ProxiedRequest) -> bool:
    return is_watch(request) and of_widgets(request)


def list_of_widgets(request: ProxiedRequest) -> bool:
    return is_list(request) and of_widgets(request) and not asks_for_the_version(request)


def asks_for_the_version(request: ProxiedRequest) -> bool:
    """A list of one object, before a watch is resumed after an error."""
    return is_list(request) and request.query.get("limit") == "1" and "continue" not in request.query


def of_config_maps(request: ProxiedRequest) -> bool:
    return request.path == "/api/v1/configmaps"


def watch_of_config_maps(request: ProxiedRequest) -> bool:
    return is_watch(request) and of_config_maps(request)


def list_of_config_maps(request: ProxiedRequest) -> bool:
    return is_list(request) and of_config_maps(request) and not asks_for_the_version(request)


# --- objects ----------------------------------------------------------------------------------------------------------


def widget(name: str, *, size: int = 1, mode: str = "good") -> Resource:
    metadata = {"name": name, "namespace": "default"}
    spec = {"size": size, "mode": mode}
    return {"apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": metadata, "spec": spec}


class Scene:
    """An operator behind the proxy, and the API server as the test sees it."""

    def __init__(self, sandbox: Sandbox, proxy: FaultProxy, start: Start) -> None:
        self.sandbox = sandbox
        self.proxy = proxy
        self.namespace = "default"
        self._start = start
        self._operator: OperatorProcess | None = None

    # --- the operator -------------------------------------------------------------------------------------------------

    @property
    def operator(self) -> OperatorProcess:
        assert self._operator is not None, "the scene has not begun"
        return self._operator

    def begin(
        self, command: list[str] | None = None, *, watch_seconds: float = WATCH_SECONDS, **settings: str
    ) -> OperatorProcess:
        """Start an operator (default: the hand-written one) behind the proxy; return at once."""
        self._operator = self._start(
            command or handwritten(),
            kubeconfig=self.proxy.kubeconfig,
            TEST_WATCH_SECONDS=str(watch_seconds),
            **settings,
        )
        return self._operator

    def ready(self, *, watch_seconds: float = WATCH_SECONDS) -> None:
        """Begin, and return when the operator is ready."""
        self.begin(watch_seconds=watch_seconds).wait_ready(within_seconds=SEEN_SECONDS)

    def check(self) -> None:
        """What must hold whatever happened: the operator runs, and met no error of its own making."""
        if self._operator is None:
            return  # the row failed before it began
        assert self.operator.process.poll() is None, f"the operator ended:\n{self.operator.text}"
        assert "please report" not in self.operator.text, self.operator.text

    def kill(self) -> None:
        """Before its proxy ends: it would connect anew while that does, and its last connection would be nobody's."""
        if self._operator is not None:
            self._operator.process.kill()

    # --- faults -------------------------------------------------------------------------------------------------------

    def meet(self, effect: Effect, *on: Predicate, times: int | None = 1) -> tuple[Fault, ...]:
        """Make the streams begin anew and meet `effect`, a fault for each of `on`.

        Returns: the faults, when each was met `times` times (None: once, and from now on).
        """
        faults = tuple(self.proxy.add(Fault(effect, on=each, times=times)) for each in on)
        self.proxy.cut_all()
        self.sandbox.eventually(
            lambda: all(fault.hits >= (times or 1) for fault in faults), within_seconds=SEEN_SECONDS
        )
        return faults

    def blind(self, *on: Predicate) -> tuple[Fault, ...]:
        """From now on the operator hears nothing on the watches `on`, until `see`."""
        return self.meet(Stall(), *on, times=None)

    def see(self, faults: tuple[Fault, ...]) -> None:
        """End these faults; the streams go on where they were.

        A watch that is broken three times without an event in between is listed anew: `blind` and `see` are two.
        """
        for fault in faults:
            self.proxy.remove(fault)
        self.proxy.cut_all()

    def no_busy_loop(self, on: Predicate, *, since: float) -> None:
        """No more requests than a wait between each two rounds allows; a round is a list and a watch."""
        rounds = 2 + (time.monotonic() - since) / BACKOFF_SECONDS
        assert self.proxy.count(on, since=since) <= 2 * rounds

    # --- objects ------------------------------------------------------------------------------------------------------

    def apply(self, *names: str, size: int) -> None:
        self.sandbox.apply([widget(name, size=size) for name in names])

    def delete(self, name: str) -> None:
        self.sandbox.delete(f"{GROUP}/v1", "Widget", name)

    def published(self, name: str) -> str | None:
        """The size that the child of an object shows; None when there is no child."""
        found = self.sandbox.get("v1", "ConfigMap", name, namespace=self.namespace)
        return None if found is None else found["data"]["size"]

    def until(self, name: str, size: int, *, within_seconds: float = SEEN_SECONDS) -> None:
        """Return when the child of an object shows `size`."""
        self.sandbox.eventually(lambda: self.published(name) == str(size), within_seconds=within_seconds)

    def until_deleted(self, name: str, *, size: int) -> None:
        """Return when `delete` was called for the widget of that name and size."""
        told = f"deleted default/{name} size={size}"
        self.sandbox.eventually(lambda: told in self.operator.text, within_seconds=SEEN_SECONDS)

    def status(self, name: str) -> dict[str, Any]:
        """Raises: `LookupError` or `TypeError` while there is none."""
        found: Any = self.sandbox.get(f"{GROUP}/v1", "Widget", name)
        status: dict[str, Any] = found["status"]
        return status

    def handled(self, name: str, *, action: str = "") -> list[dict[str, Any]]:
        """The successful handlings of the object so far."""
        lines = [line for line in self.operator.lines("reconciled") if line["object"] == f"{self.namespace}/{name}"]
        return [line for line in lines if action in ("", line["action"])]


@contextmanager
def behind_a_proxy(sandbox: Sandbox, start_operator: Start, *, token: str | None = None) -> Iterator[Scene]:
    """A scene on any sandbox; a row that went well is also checked for what must always hold."""
    with FaultProxy(sandbox, token=token) as proxy:
        scene = Scene(sandbox, proxy, start_operator)
        yield scene
        scene.check()
        scene.kill()


@contextmanager
def stopped(sandbox: Sandbox) -> Iterator[Path]:
    """The control plane does not run meanwhile; yields the folder of etcd's data."""
    sandbox.apiserver.kill()
    sandbox.etcd.kill()
    yield sandbox.folder / "etcd"
    sandbox.etcd.start()
    sandbox.apiserver.start()
    # While it makes the kind's storage it refuses.
    sandbox.eventually(lambda: sandbox.request("GET", WIDGETS).status == 200)


def compact(sandbox: Sandbox) -> None:
    """Let etcd forget its history, through its own JSON gateway."""
    (url,) = [flag.split("=", 1)[1] for flag in sandbox.etcd._command if flag.startswith("--listen-client-urls=")]

    def ask(path: str, body: dict[str, Any]) -> dict[str, Any]:
        request = urllib.request.Request(url + path, data=json.dumps(body).encode(), method="POST")
        with urllib.request.urlopen(request, timeout=10) as answer:
            decoded: dict[str, Any] = json.loads(answer.read())
            return decoded

    revision = ask("/v3/kv/range", {"key": "AA=="})["header"]["revision"]
    ask("/v3/kv/compaction", {"revision": revision, "physical": True})
