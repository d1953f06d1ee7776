"""External: each call of a client fails in turn, and what is left in the other system is compared."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from bonny import Axn, Controller, Kind, Resource, Scope, Terminal
from bonny_dev import testing

LAMP: Resource = {
    "apiVersion": "example.com/v1",
    "kind": "Lamp",
    "metadata": {"name": "desk", "namespace": "default"},
    "spec": {"size": 2},
}


class Exists(Exception):
    """The system has it already."""


class Bulbs:
    """A system with two kinds of records: by name, and with numbers that the system gives."""

    def __init__(self) -> None:
        self.named: dict[str, int] = {}
        self.numbered: dict[int, int] = {}

    async def get(self, name: str) -> int | None:
        return self.named.get(name)

    async def put(self, name: str, size: int) -> None:
        self.named[name] = size

    async def create(self, name: str, size: int) -> None:
        if name in self.named:
            raise Exists(name)
        self.named[name] = size

    async def delete(self, name: str) -> None:
        self.named.pop(name, None)

    def add(self, size: int) -> int:
        number = len(self.numbered) + 1
        self.numbered[number] = size
        return number


class Lamps(Controller[Any]):
    """What the controllers here have in common. They read `bulbs` as a module would its client class."""

    resource = Kind("example.com/v1", "Lamp", plural="lamps", scope=Scope.NAMESPACED)
    bulbs: Any

    async def finalize(self, axn: Axn[Any]) -> None:
        await self.bulbs().delete(axn.uid)


class Sound(Lamps):
    async def reconcile(self, axn: Axn[Any]) -> None:
        async with self.bulbs("https://bulbs.example.com", token="none") as bulbs:
            if await bulbs.get(axn.uid) != axn.spec["size"]:
                await bulbs.put(axn.uid, axn.spec["size"])
        axn.set_condition("Ready", True, message="it shines")


def is_made(axn: Axn[Any]) -> bool:
    return bool((axn.resource.get("status") or {}).get("conditions"))


class CountsOnItsStatus(Lamps):
    """It makes a record for each object, and writes down afterwards that it did."""

    async def reconcile(self, axn: Axn[Any]) -> None:
        if not is_made(axn):
            self.bulbs().add(axn.spec["size"])
            axn.set_condition("Made", True, message="once")

    async def finalize(self, axn: Axn[Any]) -> None:
        self.bulbs().numbered.clear()


class WritesDownFirst(Lamps):
    """It hides an error of the system, so the status says what is not so."""

    async def reconcile(self, axn: Axn[Any]) -> None:
        if not is_made(axn):
            axn.set_condition("Made", True, message="once")
            try:
                await self.bulbs().put(axn.uid, axn.spec["size"])
            except ConnectionError:
                return


class GivesUp(Lamps):
    """It takes a record that is there already for a mistake of its user."""

    async def reconcile(self, axn: Axn[Any]) -> None:
        if await self.bulbs().get(axn.uid) is None:
            try:
                await self.bulbs().create(axn.uid, axn.spec["size"])
            except Exists as error:
                raise Terminal("the name is taken") from error
        axn.set_condition("Ready", True, message="it shines")


class CreatesOnly(Lamps):
    async def reconcile(self, axn: Axn[Any]) -> None:
        await self.bulbs().create(axn.uid, axn.spec["size"])


class BelievesAnOldAnswer(Lamps):
    """It takes the answer to its read after the write for the present state, and remembers that it is done."""

    async def reconcile(self, axn: Axn[Any]) -> None:
        bulbs = self.bulbs()
        if is_made(axn):
            return
        await bulbs.put(axn.uid, axn.spec["size"])
        if await bulbs.get(axn.uid) is None:
            await bulbs.put(f"{axn.uid}-again", axn.spec["size"])
        axn.set_condition("Made", True, message="once")


class LeavesIt(Lamps):
    async def reconcile(self, axn: Axn[Any]) -> None:
        await self.bulbs().put(axn.uid, axn.spec["size"])

    async def finalize(self, axn: Axn[Any]) -> None:
        await self.bulbs().get(axn.uid)


async def sweep(controller: type[Lamps], monkeypatch: pytest.MonkeyPatch, **options: Any) -> int:
    external = testing.External(Bulbs)
    monkeypatch.setattr(controller, "bulbs", external, raising=False)
    return await external.sweep(lambda: testing.Ticks(controller, LAMP), **options)


async def test_a_sound_handler_survives_each_fault_at_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    external = testing.External(Bulbs)
    monkeypatch.setattr(Sound, "bulbs", external, raising=False)

    lives = await external.sweep(lambda: testing.Ticks(Sound, LAMP), spec={"size": 3})

    changes = sum(call.changes for call in external.calls)
    assert changes == 3  # stored, changed, deleted
    # Six faults of each change, three of each read, and an old answer of all reads but the first.
    reads = 4
    assert lives >= 6 * changes + 3 * reads + reads - 1


@pytest.mark.parametrize(
    ("controller", "line"),
    [
        (
            CountsOnItsStatus,
            "- call 1, add(2): the process is killed after it: after the object was created, the system",
        ),
        (
            CountsOnItsStatus,
            "add(2): it is carried out, and its answer is lost: after the object was created, the system",
        ),
        (CountsOnItsStatus, "add(2): the client gives up, and it is carried out after the reconcile: after the object"),
        (WritesDownFirst, "put('00000000-0000-4000-8000-000000000000', 2): it fails, and does nothing: after"),
        (
            GivesUp,
            "one's effect: after the object was created, the conditions are {}, should be {'Ready': 'True'}",
        ),
        (CreatesOnly, "the reconcile fails each time: Exists: 00000000"),
        (
            BelievesAnOldAnswer,
            "4000-8000-000000000000'): it answers with the state before the last change: after the object was created",
        ),
        (LeavesIt, "- after the deletion the system holds {'named': {'00000000-0000-4000-8000-000000000000': 2}"),
    ],
)
async def test_the_call_and_the_remaining_state_are_named(
    controller: type[Lamps], line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(AssertionError) as raised:
        await sweep(controller, monkeypatch)

    assert line in str(raised.value)


async def test_a_life_that_does_not_repeat_itself_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = iter(range(100))

    class Numbered(Lamps):
        async def reconcile(self, axn: Axn[Any]) -> None:
            if await self.bulbs().get(axn.uid) is None:
                await self.bulbs().put(axn.uid, next(numbers))

    with pytest.raises(AssertionError, match=r"^two lives without a fault differ: after the object was created, the "):
        await sweep(Numbered, monkeypatch)


async def test_a_handler_that_calls_nothing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Idle(Lamps):
        async def reconcile(self, axn: Axn[Any]) -> None: ...

        async def finalize(self, axn: Axn[Any]) -> None: ...

    with pytest.raises(AssertionError, match="is the class replaced where it is used"):
        await sweep(Idle, monkeypatch)


async def test_calls_are_recorded_without_a_sweep() -> None:
    external = testing.External(Bulbs, error=lambda: Exists("full"))
    bulbs = external("any", arguments="do")

    await bulbs.put("a", size=1)

    assert bulbs.add(2) == 1
    assert list(map(str, external.calls)) == ["put('a', size=1)", "add(2)"]
    assert external.state == {"named": {"a": 1}, "numbered": {1: 2}}
    external.reset()
    assert (external.calls, external.state) == ([], {"named": {}, "numbered": {}})


class Slowly:
    """A system whose changes take a while, and one of whose methods hands on the work of another."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    async def put(self, name: str) -> None:
        await asyncio.sleep(0)  # another call begins meanwhile
        self.names.add(name)

    async def look(self) -> bool:
        return bool(self.names)

    def handed_on(self, name: str) -> Any:
        return self._put_now(name)

    async def _put_now(self, name: str) -> None:
        self.names.add(name)


def names(system: Slowly) -> set[str]:
    return set(system.names)


async def test_the_change_of_a_call_is_its_own_where_another_one_begins_before_it_ends() -> None:
    """Regression: the last call that had begun was taken for it, and the one that changed something for a read."""
    external = testing.External(Slowly, state=names)
    system = external()

    await asyncio.gather(system.put("a"), system.look())

    assert [(call.name, call.changes) for call in external.calls] == [("put", True), ("look", False)]


async def test_a_method_that_hands_on_another_ones_work_has_ended_when_that_is_done() -> None:
    """Regression: it counted as a read, since nothing had changed when it returned."""
    external = testing.External(Slowly, state=names)

    await external().handed_on("a")

    assert [(call.name, call.changes) for call in external.calls] == [("handed_on", True)]


async def test_a_fake_that_cannot_be_copied_is_refused_in_a_sentence() -> None:
    class Locked:
        def __init__(self) -> None:
            self.lock = threading.Lock()

        async def look(self) -> None: ...

    with pytest.raises(
        AssertionError, match=r"^the fake client cannot be copied \(.*lock.*\): keep only values in its"
    ):
        await testing.External(Locked)().look()
