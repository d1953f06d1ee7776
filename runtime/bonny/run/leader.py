"""Leader: which replica of an operator acts, by a coordination.k8s.io/v1 Lease; the shell around `core.lease`.

    leadership = Leadership(Client(cluster, ...), namespace="default", name="widgets", identity=own_identity())
    client = Client(cluster, ..., fence=leadership.remaining)
    campaign = asyncio.create_task(leadership.run())
    while True:
        await leadership.acquired()
        ...                                # start the work
        await leadership.lost.wait()
        ...                                # stop it
        leadership.stood_down()

You need it for work of your own that only the leader may do. The client of handlers is fenced already.

Guarantees, as long as the assumptions of `core.lease` hold: a fenced client starts no write outside of a term; and the
process exits with `EXPIRED_EXIT_CODE` if its work has not stopped when another replica may lead: the loop is blocked, a
thread cannot be stopped, or the process was suspended.
RBAC: get, create and update leases in the namespace.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import secrets
import select
import socket
import threading
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

import msgspec
from msgspec.structs import replace

from ..client.api import Client
from ..client.clock import clock, pause
from ..client.errors import Conflict, Forbidden, NotFound, missing_rule
from ..core import lease
from ..core.lease import LeaseTiming
from ..errors import ApiError, UsageError
from ..kinds import Kind
from ..resource import Key, Resource
from ..telemetry.logging import subject_of
from .event_loop import running_in

LEASE: Final = Kind("coordination.k8s.io/v1", "Lease")
VERBS: Final = ("get", "create", "update")
# 1 and 2 are taken (bonny.main).
EXPIRED_EXIT_CODE: Final = 3
TIMING: Final = LeaseTiming()
# Thread waits stop while the machine is suspended: look at the clock at least this often.
WATCHDOG_SECONDS: Final = 1.0
REQUEST_ERRORS: Final = (ApiError, UsageError, TimeoutError, msgspec.ValidationError)

log = logging.getLogger("bonny.run.leader")


def own_identity() -> str:
    """The name of the pod or the host, and a suffix that no other process has."""
    return f"{os.environ.get('BONNY_POD_NAME') or socket.gethostname()}_{secrets.token_hex(4)}"


class Leadership:
    """One candidate for the Lease `name`. Its `client` must not be fenced by it."""

    def __init__(
        self, client: Client, *, namespace: str, name: str, identity: str, timing: LeaseTiming = TIMING
    ) -> None:
        self.lost = asyncio.Event()
        """Set from the end of a term to the beginning of the next one."""

        self._client = client
        self._key = Key(namespace, name)
        self._name = str(self._key)
        self._candidate = lease.Candidate(identity, timing)
        self._live: Resource = {}
        self._acquired = asyncio.Event()
        self._stood_down = asyncio.Event()
        self._leaving = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._watchdog = _Watchdog(self._name)
        self._failing: set[tuple[str, bool]] = set()
        """Verbs that failed when they were last used, and whether a permission was missing."""

    async def acquired(self) -> None:
        """Wait until this replica leads."""
        await self._acquired.wait()

    def remaining(self) -> float:
        """Seconds in which a request may be started and answered; 0.0 when not leading. Thread-safe."""
        return max(self._candidate.until - clock(), 0.0) if self._acquired.is_set() else 0.0

    def stood_down(self) -> None:
        """Report that all work of the lost term has stopped. No other term begins before that."""
        self._watchdog.disarm()
        self._stood_down.set()

    async def release(self) -> None:
        """Give the Lease up for good, so that another replica leads at once. All work must have stopped.

        Guarantees: returns within half a renew deadline. Without an answer until then, the Lease expires by itself.
        """
        self._leaving.set()
        self._end_term()
        self.stood_down()
        await pause(self._candidate.timing.request_seconds, wake=self._idle)

    async def run(self) -> None:
        """Try to lead, term after term, until `release`; errors of the API server are tried again."""
        self._idle.clear()
        try:
            command = self._step(lease.LeaseTick())
            while not isinstance(command, lease.Done):
                event = await self._performed(command)
                await self._settle()
                command = self._step(event)
                if self._leaving.is_set() and not self._candidate.releasing:
                    command = self._step(lease.Release())
                await self._settle()
                self._go_on()
        finally:
            self._end_term()
            self._idle.set()

    # --- terms ---

    def _step(self, event: lease.LeaseInput) -> lease.LeaseCommand:
        self._candidate, command = lease.step(self._candidate, event, now=clock(), chance=random.random())
        return command

    def _go_on(self) -> None:
        """Begin or prolong the term if the Lease was stored."""
        if clock() < self._candidate.until:
            self._watchdog.arm(self._candidate.expires)
            if not self._acquired.is_set():
                self._stood_down.clear()
                self.lost.clear()
                self._acquired.set()
                log.info("leading", extra={"lease": self._name, "identity": self._candidate.identity})

    async def _settle(self) -> None:
        """End the term if its time is over, and wait until its work has stopped."""
        if self.remaining() <= 0.0:
            self._end_term()
        if self.lost.is_set():
            await self._stood_down.wait()

    def _end_term(self) -> None:
        if self._acquired.is_set():
            self._acquired.clear()
            self.lost.set()
            level = logging.INFO if self._leaving.is_set() else logging.WARNING
            log.log(level, "no longer leading", extra={"lease": self._name})
            self._watchdog.arm(self._candidate.expires)

    # --- performing ---

    async def _performed(self, command: lease.LeaseCommand) -> lease.LeaseInput:
        match command:
            case lease.Read() | lease.Write():
                return await self._answered(command)
            case lease.LeaseWait(seconds) if self._candidate.releasing:
                await asyncio.sleep(seconds)
            case lease.LeaseWait(seconds):
                await pause(seconds, wake=self._leaving)
        return lease.LeaseTick()

    async def _answered(self, command: lease.Read | lease.Write) -> lease.LeaseInput:
        sent = clock()
        if isinstance(command, lease.Read):
            verb, request = "get", self._client.get(LEASE, self._key.name, namespace=self._key.namespace)
        elif command.record.version:
            verb, request = "update", self._client.replace(LEASE, self._body(command))
        else:
            verb, request = "create", self._client.create(LEASE, self._body(command))
        try:
            async with asyncio.timeout(command.seconds):
                record = self._understood(verb, await request)
        except REQUEST_ERRORS as error:
            if verb == "get" and isinstance(error, NotFound):
                return lease.Found(lease.LeaseRecord())
            return self._failed(verb, error)
        return lease.Found(record) if verb == "get" else lease.Stored(record, sent)

    def _body(self, command: lease.Write) -> Resource:
        """The Lease to write; fields that other clients wrote are kept."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec: Resource = msgspec.to_builtins(command.record) | {"renewTime": now}
        if command.acquires:
            spec["acquireTime"] = now
        if not spec.pop("version"):
            metadata = {"name": self._key.name, "namespace": self._key.namespace}
            return {"apiVersion": LEASE.api_version, "kind": LEASE.kind, "metadata": metadata, "spec": spec}
        return {**self._live, "spec": {**self._live.get("spec", {}), **spec}}

    def _understood(self, verb: str, live: Resource) -> lease.LeaseRecord:
        """Raises: `msgspec.ValidationError` when `live` is not a Lease."""
        decoded = msgspec.convert(live, _Lease)
        self._live = live
        self._failing -= {(verb, False), (verb, True)}
        return replace(decoded.spec, version=decoded.metadata.resourceVersion)

    def _failed(self, verb: str, error: Exception) -> lease.Failed:
        if isinstance(error, Conflict):
            return lease.Failed()  # expected: another candidate was faster
        failure = verb, isinstance(error, Forbidden)
        extra = {"lease": self._name, "verb": verb, "error": str(error) or "no answer in time"}
        if isinstance(error, Forbidden):
            extra["missing_rule"] = missing_rule(group=LEASE.group, plural=LEASE.plural, verbs=VERBS)
        level = logging.DEBUG if failure in self._failing else logging.WARNING
        log.log(level, "the lease cannot be used", extra=extra)
        self._failing.add(failure)
        return lease.Failed()


class _Metadata(msgspec.Struct):
    resourceVersion: str  # noqa: N815  the API's name


class _Lease(msgspec.Struct):
    metadata: _Metadata
    spec: lease.LeaseRecord = lease.LeaseRecord()


class _Watchdog:
    """A thread that ends the process at a deadline, which `arm` postpones and `disarm` cancels.

    Its last line names controller, object and the code that the event loop runs. It does not log, which may block.
    """

    def __init__(self, name: str) -> None:
        self._line = f"the lease {name} expired before all work had stopped: the process ends"
        self._loop_thread = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._at = float("inf")
        self._disarmed: threading.Event | None = None

    def arm(self, at: float) -> None:
        """End the process at `at`, which replaces an earlier deadline; at once if it has passed."""
        self._at = at
        self._loop_thread = threading.get_ident()
        self._loop = asyncio._get_running_loop()  # noqa: SLF001  the documented name
        self._look()
        if self._disarmed is None:
            self._disarmed = threading.Event()
            threading.Thread(target=self._watch, args=(self._disarmed,), name="lease watchdog", daemon=True).start()

    def disarm(self) -> None:
        """Cancel the deadline; without effect when there is none."""
        if self._disarmed is not None:
            self._disarmed.set()
            self._disarmed = None

    def _watch(self, disarmed: threading.Event) -> None:
        while not disarmed.wait(min(self._at - clock(), WATCHDOG_SECONDS)):
            self._look()

    def _look(self) -> None:
        if clock() >= self._at:
            # No logging, and no wait for a reader of stderr: either may be what blocks the process.
            with suppress(Exception):
                if select.select([], [2], [], 0)[1]:
                    stack, context = running_in(self._loop_thread, self._loop)
                    subject = subject_of(context)
                    line = f"{self._line}{'; ' if subject else ''}{subject}; the event loop runs {stack}\n"
                    # A longer write may block although the pipe has room.
                    os.write(2, line.encode(errors="backslashreplace")[: select.PIPE_BUF])
            os._exit(EXPIRED_EXIT_CODE)
