"""A deadline that rings late, because the event loop was held up, ends no other request on the same connection."""

from __future__ import annotations

import asyncio
import socket
import threading
import time

import pytest

from bonny.client.config import Connection
from bonny.client.transport import Transport
from tests.support.loops import LOOPS

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
# More than the transport writes in one turn of the loop.
LARGE = b"x" * 300_000


def answering(listener: socket.socket, held_up: threading.Event) -> None:
    """Answer requests on one connection, the first one as soon as the client's loop is held up."""
    connection, _ = listener.accept()
    with connection, connection.makefile("rb") as file:
        for number in range(2):
            size = 0
            while (line := file.readline()) not in (b"\r\n", b""):
                if line.lower().startswith(b"content-length:"):
                    size = int(line.partition(b":")[2])
            if len(file.read(size)) < size:
                return
            if number == 0:
                held_up.wait(10)
            connection.sendall(ANSWER)


@pytest.mark.parametrize("loop", LOOPS)
def test_it_does_not_end_the_request_after_it(loop: str) -> None:
    """Regression: a request with a timeout of 10 s failed after 0.004 s, its body cut off."""
    from bonny.run.event_loop import loop_factory  # noqa: PLC0415  uvloop where it is installed

    held_up = threading.Event()

    async def main() -> tuple[int, int]:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            threading.Thread(target=answering, args=(listener, held_up), daemon=True).start()
            server = Connection(server=f"http://127.0.0.1:{listener.getsockname()[1]}")
            transport = Transport(user_agent="test/1")

            async def both() -> tuple[int, int]:
                first = await transport.request(server, "GET", "/a", timeout=0.5)
                second = await transport.request(server, "POST", "/b", body=LARGE, timeout=10)
                return first.status, second.status

            running = asyncio.create_task(both())
            await asyncio.sleep(0.3)
            held_up.set()
            time.sleep(0.5)  # noqa: ASYNC251  holds the loop up beyond the first deadline: that is what is tested
            try:
                return await running
            finally:
                await transport.close()

    with asyncio.Runner(loop_factory=loop_factory(loop)) as runner:
        assert runner.run(main()) == (200, 200)
