"""Chaos: carries a schedule out, on the proxy and on the processes; afterwards everything works again."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from bonny_dev.sandbox import Sandbox
from bonny_dev.testing.faults import (
    CommitThenDrop,
    Cut,
    Drop,
    Effect,
    Fault,
    FaultProxy,
    Hold,
    Inject,
    Predicate,
    ProxiedRequest,
    Respond,
    Stall,
    is_any,
    is_list,
    is_watch,
    is_write,
)

from .process import OperatorUnderTest
from .schedule import Kind, Strike, Target

__all__ = ["Chaos"]


def _refusal(code: int, reason: str) -> bytes:
    status = {"kind": "Respond", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason}
    return json.dumps({**status, "message": "made up by the soak"}).encode()


JSON: Final = "application/json"
HTML: Final = b"<html><body><h1>Bad Gateway</h1></body></html>"
GONE: Final = _refusal(410, "Expired")

EFFECTS: Final[Mapping[Kind, Callable[[], Effect]]] = {
    Kind.CUT: lambda: Cut(after_lines=2),
    Kind.STALL: Stall,
    Kind.EXPIRED_EVENT: lambda: Inject(b'{"type":"ERROR","object":' + GONE + b"}\n", end=True),
    Kind.EXPIRED: lambda: Respond(410, GONE, JSON),
    Kind.GARBAGE_TEXT: lambda: Inject(b"garbage\n"),
    Kind.GARBAGE_BYTES: lambda: Inject(b"\xff\xfe{}\n"),
    Kind.GARBAGE_OBJECT: lambda: Inject(b'{"type":"ADDED","object":{}}\n'),
    Kind.GARBAGE_HTML: lambda: Inject(HTML + b"\n"),
    Kind.EMPTY_LINES: lambda: Inject(b"\n\n\n"),
    Kind.THROTTLED: lambda: Respond(429, b"Too many requests, please try again later."),
    Kind.THROTTLED_FOR: lambda: Respond(429, _refusal(429, "TooManyRequests"), JSON, retry_after="2"),
    Kind.ERROR_JSON: lambda: Respond(500, _refusal(500, "InternalError"), JSON),
    Kind.ERROR_TEXT: lambda: Respond(500, b"internal error"),
    Kind.GATEWAY_HTML: lambda: Respond(502, HTML, "text/html"),
    Kind.UNAVAILABLE_JSON: lambda: Respond(503, _refusal(503, "ServiceUnavailable"), JSON),
    Kind.UNAVAILABLE_EMPTY: lambda: Respond(503),
    Kind.TIMEOUT_TEXT: lambda: Respond(504, b"etcdserver: request timed out"),
    Kind.TIMEOUT_HTML: lambda: Respond(504, HTML, "text/html"),
    Kind.NO_JSON: lambda: Respond(200, HTML, "text/html"),
    Kind.HALF_JSON: lambda: Respond(200, b'{"kind":"WidgetList","items":[', JSON),
    Kind.UNAUTHORIZED: lambda: Respond(401, b"Unauthorized"),
    Kind.DROP: Drop,
    Kind.COMMIT_THEN_DROP: CommitThenDrop,
    Kind.HOLD: Hold,
}


def _watch_of(plural: str) -> Predicate:
    def is_it(request: ProxiedRequest) -> bool:
        return is_watch(request) and request.path.endswith(f"/{plural}")

    return is_it


REQUESTS: Final[Mapping[Target, Predicate]] = {
    Target.ANY: is_any,
    Target.READS: is_list,
    Target.WRITES: is_write,
    Target.WATCHES: is_watch,
    Target.OWNERS: _watch_of("widgets"),
    Target.CHILDREN: _watch_of("configmaps"),
}


class Chaos:
    """`struck` counts the strikes, `hits` the requests that they met, both by kind."""

    def __init__(self, sandbox: Sandbox, proxy: FaultProxy, operator: OperatorUnderTest) -> None:
        self._sandbox = sandbox
        self._proxy = proxy
        self._operator = operator
        self._running: dict[Strike, Callable[[], None]] = {}
        """How to end what is going on."""

        self.struck: Counter[Kind] = Counter()
        self.hits: Counter[Kind] = Counter()

    @property
    def now(self) -> str:
        """What is going on, in words."""
        going = [f"{strike.kind} ({strike.target})" if strike.target else strike.kind for strike in list(self._running)]
        return ", ".join(going) or "nothing"

    def run(self, strikes: Sequence[Strike], *, seconds: float, stop: threading.Event) -> None:
        """Let the strikes happen; return after `seconds`, or soon after `stop` is set, with everything mended.

        Raises: `SandboxError` when a server does not come back.
        """
        began = time.monotonic()
        restarts: list[Future[None]] = []
        # Beside the schedule, since a server takes its time; and one at a time.
        with ThreadPoolExecutor(1) as aside:
            try:
                for at, strike, begins in _moments(strikes):
                    if stop.wait(max(began + at - time.monotonic(), 0.0)):
                        break
                    if not begins:
                        self._running.pop(strike)()
                        continue
                    self.struck[strike.kind] += 1
                    restart = self._restart(strike, stop)
                    if restart is not None:
                        restarts.append(aside.submit(restart))
                    self._running[strike] = self._begin(strike)
                stop.wait(max(began + seconds - time.monotonic(), 0.0))
            finally:
                while self._running:
                    self._running.popitem()[1]()
        for done in restarts:
            done.result()

    def _begin(self, strike: Strike) -> Callable[[], None]:
        """Returns: what ends it."""
        match strike.kind:
            case Kind.RESET:
                self._proxy.cut_all()
            case Kind.SERVER_FROZEN:
                self._sandbox.apiserver.pause()
                return self._sandbox.apiserver.resume
            case Kind.ETCD_FROZEN:
                self._sandbox.etcd.pause()
                return self._sandbox.etcd.resume
            case Kind.OPERATOR_FROZEN:
                self._operator.freeze()
                return self._operator.thaw
            case kind if strike.target is not None:
                fault = self._proxy.add(Fault(EFFECTS[kind](), on=REQUESTS[strike.target], times=strike.times))
                if strike.resets:
                    self._proxy.cut_all()
                return lambda: self._remove(kind, fault)
        return lambda: None

    def _remove(self, kind: Kind, fault: Fault) -> None:
        self._proxy.remove(fault)
        self.hits[kind] += fault.hits
        if isinstance(fault.effect, Hold):
            fault.effect.until.set()

    def _restart(self, strike: Strike, stop: threading.Event) -> Callable[[], None] | None:
        """What ends a process and starts it again `lasts` seconds later; None for other strikes."""
        server = self._sandbox.apiserver
        match strike.kind:
            case Kind.SERVER_KILLED:
                ends, starts = server.kill, server.start
            case Kind.SERVER_TERMINATED:
                ends, starts = server.terminate, server.start
            case Kind.OPERATOR_KILLED:
                ends, starts = self._operator.kill, self._operator.start
            case _:
                return None

        def restart() -> None:
            ends()
            stop.wait(strike.lasts)
            starts()

        return restart


def _moments(strikes: Sequence[Strike]) -> Iterator[tuple[float, Strike, bool]]:
    """When each strike begins (True) and ends, in order."""
    begins = [(strike.at, 0, strike, True) for strike in strikes]
    ends = [(strike.at + strike.lasts, 1, strike, False) for strike in strikes]
    # A strike of no length begins before it ends.
    for at, _, strike, beginning in sorted([*begins, *ends], key=lambda moment: moment[:2]):
        yield at, strike, beginning
