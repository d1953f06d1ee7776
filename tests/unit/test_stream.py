"""Stream: how the shell around the watch rules carries their steps out.

It is fed by hand; only where the end of a watch is at stake, a peer drips bytes over TCP.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, cast

import pytest

from bonny.client.api import Client
from bonny.client.config import Connection
from bonny.core import watch
from bonny.core.store import Delta
from bonny.engine import stream as stream_module
from bonny.engine.stream import SECONDS_AT_ONCE, Stream
from bonny.kinds import Kind, Scope
from tests.support.core import line, page, thing
from tests.support.peer import Call, Peer

SECRET = Kind("v1", "Secret")


class Listener:
    """Notes what it is told, and whether the stream called itself in sync then."""

    def __init__(self) -> None:
        self.seen_keys: list[str] = []
        self.in_sync: set[bool] = set()
        self.advances = 0
        self.restores = 0
        self.fails_on = ""
        self.seconds_each = 0.0
        """How long it takes for each difference, on a clock of its own (`slow`)."""
        self.now = 0.0

    def seen(self, source: Stream, delta: Delta) -> None:
        if delta.key.name == self.fails_on:
            raise RuntimeError("a subscriber of our own making")
        self.seen_keys.append(delta.key.name)
        self.in_sync.add(source.synced)
        self.now += self.seconds_each

    def advanced(self, source: Stream) -> None:
        self.advances += 1

    def restored(self, source: Stream) -> None:
        self.restores += 1


def pauses(stream: Stream, event: watch.WatchInput) -> int:
    """Carry one step out; how often it let others have their turn."""
    step = stream._step(event)
    count = 0
    while True:
        try:
            step.send(None)
        except StopIteration:
            return count
        count += 1


def followed(listener: Listener) -> Stream:
    made = Stream(cast("Any", None), SECRET, namespace=None, options=watch.WatchOptions())
    made.subscribe(listener)
    return made


async def first_command(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> watch.Command:
    """What it asks for when it is run; nothing is carried out."""
    asked: asyncio.Future[watch.Command] = asyncio.Future()

    async def performed(request: watch.Command) -> watch.Command:
        asked.set_result(request)
        raise asyncio.CancelledError

    for name in ("_list", "_watch"):
        monkeypatch.setattr(stream, name, performed)
    with contextlib.suppress(asyncio.CancelledError):
        await stream.run()
    return asked.result()


def slow(listener: Listener, monkeypatch: pytest.MonkeyPatch, *, seconds_each: float) -> Stream:
    """A stream whose listener takes so long for each difference, a little more so that rounding does not matter."""
    listener.seconds_each = 1.01 * seconds_each
    monkeypatch.setattr(stream_module.time, "monotonic", lambda: listener.now)
    return followed(listener)


def test_a_sweep_of_many_objects_does_not_hold_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    listener = Listener()
    stream = slow(listener, monkeypatch, seconds_each=SECONDS_AT_ONCE / 250)
    objects = 4 * 250
    assert pauses(stream, watch.Reply(200, page(*(thing(f"s{n}") for n in range(objects)), version=10))) == 4
    pauses(stream, watch.Silent())
    pauses(stream, watch.Tick())

    assert pauses(stream, watch.Reply(200, page(version=11))) == 4

    assert len(listener.seen_keys) == 2 * objects
    assert len(stream.store) == 0


def test_large_objects_do_not_hold_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: whether a ConfigMap changed takes decoding it; eight large ones held the loop for 100 ms."""
    listener = Listener()
    stream = slow(listener, monkeypatch, seconds_each=SECONDS_AT_ONCE / 2)

    def objects(version: int) -> bytes:
        return page(*(thing(f"s{n}", version=version) for n in range(8)), version=version)

    assert pauses(stream, watch.Reply(200, objects(10))) == 4
    pauses(stream, watch.Silent())
    pauses(stream, watch.Tick())

    listener.seconds_each *= 2
    assert pauses(stream, watch.Reply(200, objects(20))) == 8, "old and new of each are compared"


def test_a_stream_calls_itself_in_sync_only_after_everybody_saw_its_first_list() -> None:
    listener = Listener()
    stream = followed(listener)

    pauses(stream, watch.Reply(200, page(thing("a"), thing("b"), version=10)))

    assert listener.in_sync == {False}
    assert (stream.synced, listener.advances) == (True, 1)


async def test_after_an_error_of_a_subscriber_everything_is_told_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: the store knew the object, so the list after the error was no difference and nobody was told."""
    listener = Listener()
    stream = followed(listener)
    await first_command(stream, monkeypatch)
    pauses(stream, watch.Reply(200, page(version=10)))
    pauses(stream, watch.Opened())
    listener.fails_on = "a"
    secret = {"apiVersion": "v1", "kind": "Secret", **thing("a", version=11)}
    with pytest.raises(RuntimeError):
        pauses(stream, watch.Line(line("ADDED", secret)))
    listener.fails_on = ""

    assert await first_command(stream, monkeypatch) == watch.ListPage(1000, ""), "its first page was small"
    pauses(stream, watch.Reply(200, page(thing("a", version=11), version=11)))

    assert listener.restores == 1
    assert listener.seen_keys == ["a"]


async def test_a_stream_that_is_told_to_distrust_begins_again_at_once_and_can_still_be_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = followed(listener := Listener())
    asked: asyncio.Queue[watch.Command] = asyncio.Queue()

    async def never(request: watch.Command) -> watch.Command:
        asked.put_nowait(request)
        return await asyncio.Event().wait()  # type: ignore[return-value]

    monkeypatch.setattr(stream, "_list", never)
    running = asyncio.create_task(stream.run())
    assert isinstance(await asked.get(), watch.ListPage)

    stream.distrust()
    assert isinstance(await asked.get(), watch.ListPage)
    await stream._step(watch.Reply(200, page(thing("a"), version=10)))
    assert listener.restores == 1

    stream.distrust()
    running.cancel()
    await asyncio.wait([running], timeout=5.0)
    assert running.cancelled()
    assert asked.empty()


def test_a_list_that_shows_older_versions_is_read_again_as_that_of_a_restored_server() -> None:
    """Regression: `restored` was told only when the version of the whole list fell."""
    listener = Listener()
    stream = followed(listener)
    pauses(stream, watch.Reply(200, page(thing("a", version=8), thing("b", version=9), version=10)))
    pauses(stream, watch.Opened())
    pauses(stream, watch.Silent())
    pauses(stream, watch.Tick())

    pauses(stream, watch.Reply(200, page(thing("a", version=5), thing("b", version=9), version=20)))

    assert stream.error is not None
    pauses(stream, watch.Tick())
    assert listener.restores == 0
    listener.seen_keys.clear()
    pauses(stream, watch.Reply(200, page(thing("a", version=5), thing("b", version=9), version=20)))
    assert listener.restores == 1
    assert listener.seen_keys == ["a", "b"], "an equal version may stand for another state"
    assert stream.error is None


# --- over TCP ---------------------------------------------------------------------------------------------------------


class Cluster:
    """Leads to `url`, as nobody."""

    source = "the test"

    def __init__(self, url: str) -> None:
        self._url = url

    async def connect(self) -> Connection:
        return Connection(server=self._url)


async def watched(peer: Peer, request: watch.Watch) -> Stream:
    """Carry `request` out; whatever the peer says, that must end."""
    async with Client(Cluster(peer.url), user_agent="test/1") as client:
        stream = Stream(client, SECRET, namespace=None, options=watch.WatchOptions())
        await stream._step(watch.Reply(200, page(version=10)))
        async with asyncio.timeout(5):
            await stream._watch(request)
        return stream


def dripping(status_line: str) -> Any:
    """The script of a server that answers with one line feed after the other, without end."""

    async def script(call: Call) -> None:
        await call.request()
        await call.say(f"HTTP/1.1 {status_line}\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        while True:
            await call.say(b"1\r\n\n\r\n")
            await asyncio.sleep(0.05)

    return script


async def test_a_watch_ends_in_time_although_bytes_trickle_in() -> None:
    """Regression: silence was measured between bytes alone, so a drop now and then kept a dead watch alive."""
    async with Peer(dripping("200 OK")) as peer:
        stream = await watched(peer, watch.Watch("10", timeout=1.0, deadline=0.5))

    assert stream.error is not None
    assert stream.error.kind is watch.ErrorKind.SHORT


async def test_the_body_of_a_refusal_ends_in_time_although_bytes_trickle_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: the reading of a refusal had no end but the size of its body."""
    monkeypatch.setattr(stream_module, "REFUSAL_SECONDS", 0.2)
    async with Peer(dripping("503 Service Unavailable")) as peer:
        stream = await watched(peer, watch.Watch("10", timeout=200.0, deadline=200.0))

    assert stream.error is not None
    assert stream.error.kind is watch.ErrorKind.SILENT


async def test_a_watch_that_outlives_its_time_with_events_is_followed_by_the_next() -> None:
    """The server keeps it open for longer than it was asked for: no trouble, as long as it brought something."""
    event = line("ADDED", {"apiVersion": "v1", "kind": "Secret", **thing("a", version=11)}) + b"\n"

    async def script(call: Call) -> None:
        await call.request()
        await call.say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        await call.say(f"{len(event):x}\r\n".encode() + event + b"\r\n")
        await call.hung_up()

    async with Peer(script) as peer:
        stream = await watched(peer, watch.Watch("10", timeout=1.0, deadline=0.5))

    assert stream.error is None
    assert stream.version == 11


@pytest.mark.parametrize(
    ("kind", "then"),
    [
        (
            Kind("example.com/v1", "Widget", plural="widgets", scope=Scope.NAMESPACED),
            "the CRD widgets.example.com is not installed: `invoke install` installs the CRDs of this operator",
        ),
        (
            Kind("v1", "ConfigMpa", plural="configmpas", scope=Scope.NAMESPACED),
            "Kubernetes has no kind 'ConfigMpa' in v1: did you mean ConfigMap?",
        ),
        (SECRET, None),
    ],
)
def test_a_kind_that_is_not_served_names_the_crd_to_install(
    kind: Kind, then: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    stream = Stream(cast("Any", None), kind, namespace=None, options=watch.WatchOptions())

    stream._report(None, watch.StreamError(watch.ErrorKind.MISSING, "list", 404, "404 page not found", 0.0))

    assert [vars(line).get("then") for line in caplog.records] == [then]
