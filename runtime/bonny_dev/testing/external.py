"""External: lets each call of a client to another system fail in turn, and compares the state that it leaves there.

    external = testing.External(FakeDns)
    monkeypatch.setattr(controllers, "DnsClient", external)
    await external.sweep(lambda: testing.Ticks(DnsRecordController, record()))

The class stands for the system: it has the methods of the real client, and keeps their effects in its attributes. It
takes milliseconds and no server. `invoke prove` does the same with HTTP calls of a real process.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from functools import partial
from typing import Any, Final

from bonny.errors import Terminal
from bonny.resource import Resource

from .ticks import ONE_SECOND, Ticks

SHOWN: Final = 120
CREATED: Final = "created"
CHANGED: Final = "changed"
DELETED: Final = "deleted"


class CallFault(StrEnum):
    """A fault of one call; the text is the end of a sentence about it."""

    KILLED_BEFORE = "the process is killed before it"
    KILLED_AFTER = "the process is killed after it"
    ERROR = "it fails, and does nothing"
    LOST = "it is carried out, and its answer is lost"
    SLOW = "the client gives up, and it is carried out after the reconcile"
    REPEATED = "the client sends it twice, so the second finds the first one's effect"
    OLD = "it answers with the state before the last change"


OF_CHANGES: Final = tuple(each for each in CallFault if each is not CallFault.OLD)
OF_READS: Final = (CallFault.KILLED_BEFORE, CallFault.ERROR, CallFault.SLOW, CallFault.OLD)


class Killed(BaseException):
    """The process of the handler ended here. No `except Exception` stops it."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a method."""

    name: str
    arguments: tuple[Any, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    changes: bool = False
    """Whether it changed the state of the system."""

    def __str__(self) -> str:
        words = [*map(repr, self.arguments), *(f"{name}={value!r}" for name, value in self.options.items())]
        return _cut(f"{self.name}({', '.join(words)})")


@dataclass(frozen=True, slots=True)
class End:
    """The end of one step of a life."""

    held: Any
    """The state of the system."""

    conditions: Mapping[str, str]
    """The status of each condition of the object."""

    def contrast(self, wanted: End) -> str:
        """How it differs from the end that is wanted."""
        if self.held != wanted.held:
            return f"the system holds {_cut(self.held)}, should hold {_cut(wanted.held)}"
        return f"the conditions are {_cut(dict(self.conditions))}, should be {_cut(dict(wanted.conditions))}"


class External:
    """A recorder around a client class. Call it in place of that class: each call returns a client of one system."""

    def __init__(
        self,
        client: Callable[[], Any],
        *,
        error: Callable[[], Exception] = lambda: ConnectionError("500 Internal Server Error"),
        state: Callable[[Any], Any] = vars,
    ) -> None:
        """`client` makes the fake client of an empty system. `error` makes the error of a call that fails (default:
        `ConnectionError`); one whose client gives up raises `TimeoutError`. `state` picks the state of the fake client
        that is compared: by default all its attributes."""
        self._make, self._error, self._state = client, error, state
        self.calls: list[Call] = []
        """The calls since the last `reset`, or of the last life of `sweep`."""

        self.reset()

    def reset(self) -> None:
        """Begin with an empty system, and without calls."""
        self.fake = self._make()
        self.calls = []
        self._before: Any = None
        self._at: tuple[int, CallFault] | None = None
        self._dead = False
        self._late: list[Callable[[], Any]] = []

    @property
    def state(self) -> Any:
        """The state of the system now."""
        return _copied(self._state(self.fake))

    def __call__(self, *_: Any, **__: Any) -> Client:
        """The client of this system, for any address and credentials."""
        return Client(self.fake, begin=self._begin, ended=self._ended)

    async def sweep(
        self,
        ticks: Callable[[], Ticks],
        *,
        spec: Mapping[str, Any] | None = None,
        max: int = 20,  # noqa: A002
    ) -> int:
        """Live through creation, a change of fields in the `spec` (default: none), and deletion, first without a fault,
        and then with each fault at each call. `ticks` makes the object of a life, with its controller.

        Each reconcile has a new controller, so a life has only the state in the object and in the system. After each
        step the system must have the state that it has without a fault, and the object the same conditions; in the end
        the system must be as it was at the beginning.

        Returns: the number of lives with a fault. Raises: `AssertionError`, with a line about each life that went
        wrong; also when nothing is called, when two lives without a fault differ, and when a life does not come to rest
        within `max` reconciles (default 20).
        """
        wanted = await self._life(ticks, spec, max)
        calls = list(self.calls)
        if not calls:
            raise AssertionError("the handler called no method of the client: is the class replaced where it is used?")
        again = await self._life(ticks, spec, max)
        for step, state in wanted.items():
            if state != again[step]:
                raise AssertionError(
                    f"two lives without a fault differ: after the object was {step}, {state.contrast(again[step])}; "
                    "give `state` a function that leaves out the parts that differ by nature"
                )
        self.reset()
        problems, left = [], wanted[DELETED].held
        if left != self.state:
            problems.append(
                f"- after the deletion the system holds {_cut(left)}, and at the beginning {_cut(self.state)}"
            )
        lives = 0
        for number, fault in _plans(calls):
            lives += 1
            told = f"- call {number + 1}, {calls[number]}: {fault}"
            try:
                ended = await self._life(ticks, spec, max, at=(number, fault))
            except AssertionError as error:
                problems.append(f"{told}: {error}")
                continue
            wrong = next((step for step in wanted if ended[step] != wanted[step]), None)
            if wrong is not None:
                problems.append(f"{told}: after the object was {wrong}, {ended[wrong].contrast(wanted[wrong])}")
        if problems:
            raise AssertionError("\n".join([f"{len(problems)} of {lives} lives went wrong:", *problems]))
        return lives

    async def _life(
        self,
        make: Callable[[], Ticks],
        spec: Mapping[str, Any] | None,
        most: int,
        *,
        at: tuple[int, CallFault] | None = None,
    ) -> dict[str, End]:
        """One life; returns the end of each step."""
        self.reset()
        self._at = at
        ticks, ends = make(), dict[str, End]()
        await self._settle(ticks, ticks.tick, most)
        ends[CREATED] = self._end(ticks)
        if spec is not None:
            ticks.resource = _changed(ticks.resource, spec)
            await self._settle(ticks, ticks.tick, most)
            ends[CHANGED] = self._end(ticks)
        await self._settle(ticks, ticks.finalize, most)
        ends[DELETED] = self._end(ticks)
        return ends

    def _end(self, ticks: Ticks) -> End:
        conditions = (ticks.resource.get("status") or {}).get("conditions") or ()
        return End(self.state, {each["type"]: each["status"] for each in conditions})

    async def _settle(self, ticks: Ticks, step: Callable[[], Any], most: int) -> None:
        """Reconcile until nothing changes, as often as the runtime would. Raises: `AssertionError`."""
        waited, error = False, ""
        for _ in range(most):
            before, self._dead = self.state, False
            pause: float | None = 0.0
            try:
                written = await step()
                error = ""
                pause = ticks.token.requeue_seconds if ticks.token else None
            except Terminal:
                await self._land()
                return
            except Killed:
                written = True
            except Exception as raised:  # noqa: BLE001  a reconcile that fails is tried again, as in the runtime
                written, error = True, f"{type(raised).__name__}: {raised}"
            await self._land()
            if not written and self.state == before and (waited or pause is None):
                return
            waited = not written and self.state == before
            ticks.now += timedelta(seconds=pause) if waited and pause else ONE_SECOND
        why = f"the reconcile fails each time: {_cut(error)}" if error else "each reconcile changes something"
        raise AssertionError(f"it does not come to rest within {most} reconciles: {why}")

    async def _land(self) -> None:
        """Carry out the calls that were slow."""
        while self._late:
            outcome = self._late.pop(0)()
            if inspect.isawaitable(outcome):
                await outcome

    # --- one call ---

    def _begin(self, name: str, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> Ongoing:
        """Record a call. Raises: `Killed`, or the error of a call that does nothing, at least not now."""
        if self._dead:  # a killed process runs no `finally` and no `async with`
            raise Killed
        self.calls.append(Call(name, arguments, dict(options)))
        at, fault = self._at or (None, None)
        if at != len(self.calls) - 1:
            fault = None
        if fault is CallFault.KILLED_BEFORE:
            self._dead = True
            raise Killed
        if fault is CallFault.ERROR:
            raise self._error()
        system = self._before if fault is CallFault.OLD and self._before is not None else self.fake
        method = partial(getattr(system, name), *arguments, **options)
        if fault is CallFault.SLOW:
            self._late.append(method)
            raise TimeoutError(f"{name}: no answer")
        return Ongoing(len(self.calls) - 1, method, fault, self.state, _copied(self.fake))

    def _ended(self, ongoing: Ongoing) -> None:
        """After a call was carried out. Raises: `Killed`, or the error of a lost answer."""
        if self.state != ongoing.before:
            self.calls[ongoing.number] = replace(self.calls[ongoing.number], changes=True)
            self._before = ongoing.system
        if ongoing.fault is CallFault.KILLED_AFTER:
            self._dead = True
            raise Killed
        if ongoing.fault is CallFault.LOST:
            raise self._error()


@dataclass(frozen=True, slots=True)
class Ongoing:
    """A call that is carried out now."""

    number: int
    """Its place among the calls. Others may begin before it ends."""

    method: Callable[[], Any]
    """The method of the fake client, with its arguments."""

    fault: CallFault | None
    before: Any
    """The state before the call."""

    system: Any
    """A copy of the whole fake client before the call."""

    @property
    def is_repeated(self) -> bool:
        """Whether the client sends the call once more, and takes the second answer."""
        return self.fault is CallFault.REPEATED


class Client:
    """The methods of the fake client, each of whose calls is recorded, and may fail."""

    def __init__(self, fake: Any, *, begin: Callable[..., Ongoing], ended: Callable[[Ongoing], None]) -> None:
        self._fake, self._begin, self._ended = fake, begin, ended

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._fake, name)
        if not callable(method):
            return method
        if inspect.iscoroutinefunction(method):

            async def call_async(*arguments: Any, **options: Any) -> Any:
                ongoing = self._begin(name, arguments, options)
                return await self._finished(ongoing, ongoing.method())

            return call_async

        def call(*arguments: Any, **options: Any) -> Any:
            ongoing = self._begin(name, arguments, options)
            answer = ongoing.method()
            if inspect.isawaitable(answer):  # a `def` that hands on the work of another method
                return self._finished(ongoing, answer)
            self._ended(ongoing)
            return ongoing.method() if ongoing.is_repeated else answer

        return call

    async def _finished(self, ongoing: Ongoing, running: Awaitable[Any]) -> Any:
        answer = await running
        self._ended(ongoing)
        return await ongoing.method() if ongoing.is_repeated else answer

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Nothing is held open."""

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is held open."""


def _plans(calls: list[Call]) -> Iterator[tuple[int, CallFault]]:
    """Each fault at each call; an old answer only where something had changed before."""
    changed = False
    for number, call in enumerate(calls):
        for fault in OF_CHANGES if call.changes else OF_READS:
            if fault is not CallFault.OLD or changed:
                yield number, fault
        changed = changed or call.changes


def _changed(resource: Resource, spec: Mapping[str, Any]) -> Resource:
    metadata = {**resource["metadata"], "generation": resource["metadata"]["generation"] + 1}
    return {**resource, "metadata": metadata, "spec": {**resource.get("spec", {}), **spec}}


def _copied(value: Any) -> Any:
    try:
        return copy.deepcopy(value)
    except TypeError as error:
        raise AssertionError(
            f"the fake client cannot be copied ({error}): keep only values in its attributes"
        ) from error


def _cut(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
