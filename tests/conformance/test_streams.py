"""Streams: chunks as they come, an end that is told from a break, and nothing left when the block is left."""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from bonny.client.config import Connection
from bonny.client.errors import Unreachable
from bonny.client.request import path_of, target_of
from bonny.client.transport import Transport
from bonny.core.framing import Lines
from bonny.kinds import Kind
from bonny_dev.sandbox import Sandbox
from bonny_dev.testing.faults import Cut, Fault, FaultProxy, Stall, is_watch
from tests.conformance.conftest import LINUX, PATIENCE, SECRET, refused, until
from tests.support.peer import Call, Peer, answer
from tests.support.processes import frozen
from tests.support.sockets import State, between

CONFIG_MAP = Kind("v1", "ConfigMap")
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


def config_map(name: str, **metadata: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default", **metadata}}


def watch(name: str, **query: str) -> str:
    """The target of a watch of one ConfigMap."""
    selected = {"fieldSelector": f"metadata.name={name}", "watch": "true", "timeoutSeconds": "300"}
    return target_of(path_of(CONFIG_MAP, "default"), {**selected, **query})


async def lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[dict[str, object]]:
    framed = Lines()
    async for data in chunks:
        for line in framed.feed(data):
            yield msgspec.json.decode(line)


# --- on the real API server -------------------------------------------------------------------------------------------


async def test_each_event_comes_without_waiting_for_the_next(
    transport: Transport, cluster: Connection, sandbox: Sandbox
) -> None:
    name = f"one-by-one-{uuid.uuid4()}"  # of another transport's test a watch would show the last state
    async with transport.stream(cluster, watch(name), read_timeout=60) as streamed:
        assert streamed.status == 200
        assert streamed.headers["content-type"] == "application/json"
        events = lines(streamed.chunks)
        for number in range(10):
            change = {**config_map(name), "data": {"number": str(number)}}
            await asyncio.to_thread(sandbox.apply, change)
            async with asyncio.timeout(PATIENCE):
                event = await anext(events)
            assert event["object"]["data"] == {"number": str(number)}


async def test_an_event_of_megabytes_comes_whole(transport: Transport, cluster: Connection, sandbox: Sandbox) -> None:
    content = "x" * 1_000_000
    async with transport.stream(cluster, watch("large"), read_timeout=60) as streamed:
        await asyncio.to_thread(sandbox.apply, {**config_map("large"), "data": {"content": content}})

        async with asyncio.timeout(PATIENCE):
            event = await anext(lines(streamed.chunks))

    assert event["object"]["data"] == {"content": content}


async def test_a_watch_that_the_server_ends_ends(transport: Transport, cluster: Connection) -> None:
    async with transport.stream(cluster, watch("nobody", timeoutSeconds="1"), read_timeout=60) as streamed:
        async with asyncio.timeout(PATIENCE):
            assert [data async for data in streamed.chunks] == []


async def test_a_refused_stream_is_an_answer_with_its_reason(transport: Transport, cluster: Connection) -> None:
    gone = target_of("/apis/example.com/v9/nothings", {"watch": "true"})
    async with transport.stream(cluster, gone, read_timeout=60) as streamed:
        body = b"".join([data async for data in streamed.chunks])

    assert (streamed.status, body) == (404, b"404 page not found\n")


@pytest.mark.parametrize("event", [0, 2])
async def test_a_watch_that_is_cut_is_told_from_one_that_ended(
    transport: Transport, sandbox: Sandbox, event: int
) -> None:
    names = [f"cut-{number}" for number in range(4)]
    sandbox.apply([config_map(name) for name in names])
    with FaultProxy(sandbox) as proxy:
        proxy.add(Fault(Cut(after_lines=event), on=is_watch))
        target = target_of(path_of(CONFIG_MAP, "default"), {"watch": "true"})
        async with transport.stream(Connection(server=proxy.url), target, read_timeout=60) as streamed:
            events = lines(streamed.chunks)
            for _ in range(event):
                await anext(events)
            with pytest.raises(Unreachable):
                await anext(events)


async def test_a_watch_that_falls_silent_is_a_timeout(transport: Transport, sandbox: Sandbox) -> None:
    with FaultProxy(sandbox) as proxy:
        proxy.add(Fault(Stall(), on=is_watch))
        began = time.monotonic()
        async with transport.stream(Connection(server=proxy.url), watch("x"), read_timeout=1) as streamed:
            with pytest.raises(TimeoutError, match="was silent for"):
                await anext(aiter(streamed.chunks))
    assert 1 <= time.monotonic() - began < PATIENCE


async def test_a_frozen_api_server_is_a_timeout_of_its_watches(
    transport: Transport, cluster: Connection, sandbox: Sandbox
) -> None:
    async with transport.stream(cluster, watch("x"), read_timeout=0.5) as streamed:
        with frozen(sandbox), pytest.raises(TimeoutError):
            await anext(aiter(streamed.chunks))


async def test_200_watches_do_not_starve_requests(transport: Transport, cluster: Connection) -> None:
    """Regression of a library: it counted watches among its 100 connections."""
    async with contextlib.AsyncExitStack() as watches:
        opened = [
            watches.enter_async_context(transport.stream(cluster, watch(f"of-{number}"), read_timeout=60))
            for number in range(200)
        ]
        for opening in opened:
            await opening
        async with asyncio.timeout(PATIENCE):
            got = await asyncio.gather(
                *(transport.request(cluster, "GET", "/api/v1/namespaces/default", timeout=PATIENCE) for _ in range(20))
            )
    assert {one.status for one in got} == {200}


# --- byte for byte ----------------------------------------------------------------------------------------------------


async def test_silence_that_is_shorter_than_the_limit_is_none(transport: Transport) -> None:
    async def slow(call: Call) -> None:
        await call.request()
        await call.say(CHUNKED)
        for _ in range(4):
            await asyncio.sleep(0.3)
            await call.say(chunk(b"x"))
        await call.say(END)

    async with Peer(slow) as peer, transport.stream(_told(peer.url), "/", read_timeout=0.9) as streamed:
        assert b"".join([data async for data in streamed.chunks]) == b"xxxx"


async def test_a_slow_reader_is_not_taken_for_a_silent_server(transport: Transport) -> None:
    """The server is held back meanwhile, so what it sends is not heaped up in memory either."""
    sent = 0

    async def talks(call: Call) -> None:
        nonlocal sent
        await call.request()
        await call.say(CHUNKED)
        while sent < 100:
            await call.say(chunk(b"x" * 1_000_000))
            sent += 1
        await call.say(END)

    async with Peer(talks) as peer, transport.stream(_told(peer.url), "/", read_timeout=0.3) as streamed:
        chunks = aiter(streamed.chunks)
        read = len(await anext(chunks))
        await asyncio.sleep(0.8)
        assert sent < 50, "megabytes, most of them in the sockets"
        async for data in chunks:
            read += len(data)
    assert read == 100_000_000


async def test_what_arrived_while_the_loop_was_held_up_is_not_silence(transport: Transport) -> None:
    """Regression: uvloop runs timers before it reads, so the deadline passed while the bytes were there."""

    async def talks(call: Call) -> None:
        await call.request()
        await call.say(CHUNKED)
        for _ in range(3):
            for _ in range(20):
                await asyncio.sleep(0)
            await call.say(chunk(b"x"))
            time.sleep(0.5)  # noqa: ASYNC251  the loop is held up
        await call.say(END)

    async with Peer(talks) as peer, transport.stream(_told(peer.url), "/", read_timeout=0.3) as streamed:
        assert b"".join([data async for data in streamed.chunks]) == b"xxx"


@pytest.mark.parametrize("script", ["mute", "silent", "half a head"])
async def test_a_stream_without_an_answer_ends_in_time(transport: Transport, script: str) -> None:
    async def says(call: Call) -> None:
        if script != "mute":
            await call.request()
        if script == "half a head":
            await call.say(b"HTTP/1.1 200 OK\r\nTransfer")
        await call.hung_up()

    async with Peer(says) as peer:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(PATIENCE), transport.stream(_told(peer.url), "/", read_timeout=0.3):
                pass


def _told(url: str) -> Connection:
    return Connection(server=url, authorization=SECRET)


async def _whole(transport: Transport, url: str) -> bytes:
    async with transport.stream(_told(url), "/", read_timeout=5) as streamed:
        return b"".join([data async for data in streamed.chunks])


@pytest.mark.parametrize("then", ["resets", "closes"])
@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="before-the-answer"),
        pytest.param(CHUNKED, id="after-the-head"),
        pytest.param(CHUNKED + chunk(b"line\n"), id="between-chunks"),
        pytest.param(CHUNKED + b"64\r\nhalf a", id="in-a-chunk"),
        pytest.param(CHUNKED + b"xyz\r\n", id="no-chunk"),
        pytest.param(answer(b"abc")[:-1], id="in-the-body"),
    ],
)
async def test_a_stream_that_breaks(transport: Transport, then: str, data: bytes) -> None:
    async def says(call: Call) -> None:
        await call.request()
        await call.say(data)
        if then == "resets":
            call.reset()

    async with Peer(says) as peer:
        await refused(_whole(transport, peer.url))


async def test_what_goes_wrong_in_the_block_is_not_changed(transport: Transport) -> None:
    """Regression: a ValueError or TimeoutError of the reader's own was told as a server that cannot be reached."""
    async with Peer() as peer:
        for error in (ValueError("ours"), TimeoutError("ours"), OSError("ours")):
            with pytest.raises(type(error)) as caught:
                async with transport.stream(Connection(server=peer.url), "/", read_timeout=5):
                    raise error
            assert caught.value is error


# --- nothing is left --------------------------------------------------------------------------------------------------


async def forever(call: Call) -> None:
    await call.request()
    await call.say(CHUNKED)
    while True:
        await call.say(chunk(b"line\n"))
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("how", ["leaves", "breaks", "raises", "is cancelled"])
async def test_leaving_the_block_closes_the_connection(transport: Transport, how: str) -> None:
    async def follow(url: str, begun: asyncio.Event) -> None:
        async with transport.stream(Connection(server=url), "/", read_timeout=60) as streamed:
            async for _ in streamed.chunks:
                begun.set()
                match how:
                    case "leaves":
                        return
                    case "breaks":
                        break
                    case "raises":
                        raise RuntimeError

    async with Peer(forever) as peer:
        begun = asyncio.Event()
        following = asyncio.create_task(follow(peer.url, begun))
        await begun.wait()
        if how == "is cancelled":
            following.cancel()
        await asyncio.wait([following])

        await until(lambda: peer.open == 0)
        assert len(peer.calls) == 1


async def test_a_stream_that_was_read_to_its_end_leaves_its_connection_to_the_next(transport: Transport) -> None:
    async with Peer() as peer:
        for _ in range(3):
            await _whole(transport, peer.url)

        assert len(peer.calls) == 1


async def test_a_stream_that_was_not_read_leaves_nothing_to_the_next(transport: Transport) -> None:
    """Also when all of it has arrived."""

    async def talks(call: Call) -> None:
        while True:
            await call.request()
            await call.say(answer(b"x" * 500_000))

    async with Peer(talks) as peer:
        for _ in range(2):
            async with transport.stream(_told(peer.url), "/", read_timeout=5):
                for _ in range(50):
                    await asyncio.sleep(0)
            assert len(await _whole(transport, peer.url)) == 500_000


@LINUX
async def test_the_api_server_sees_at_once_that_a_watch_was_left(
    transport: Transport, cluster: Connection, sandbox: Sandbox
) -> None:
    port = int(sandbox.url.rsplit(":", 1)[1])
    before = len([found for found in between(remote=port) if found.state == State.ESTABLISHED])

    async with contextlib.AsyncExitStack() as watches:
        for number in range(10):
            await watches.enter_async_context(transport.stream(cluster, watch(f"left-{number}"), read_timeout=60))
        opened = len([found for found in between(remote=port) if found.state == State.ESTABLISHED])

    assert opened == before + 10
    await until(lambda: len([found for found in between(remote=port) if found.state == State.ESTABLISHED]) == before)


@LINUX
async def test_nothing_leaks(transport: Transport, cluster: Connection, sandbox: Sandbox) -> None:
    """Whatever became of the streams and requests: no descriptor is kept, also of those to a frozen server."""
    await transport.request(cluster, "GET", "/version", timeout=10)
    before = _descriptors()

    for _ in range(5):
        async with transport.stream(cluster, watch("x"), read_timeout=60):
            pass
        following = asyncio.create_task(_all(transport, cluster))
        await asyncio.sleep(0)
        following.cancel()
        await asyncio.wait([following])
    watches = contextlib.AsyncExitStack()
    for _ in range(5):
        await watches.enter_async_context(transport.stream(cluster, watch("x"), read_timeout=60))
    with frozen(sandbox):
        await watches.aclose()
        await until(lambda: _descriptors() <= before)


async def _all(transport: Transport, cluster: Connection) -> None:
    async with transport.stream(cluster, watch("x"), read_timeout=60) as streamed:
        async for _ in streamed.chunks:
            pass


def _descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))
