"""Kubelet: the part of one that forwards ports, so that a real API server can be asked to forward to a pod.

It speaks `v4.channel.k8s.io` as the streaming server of Kubernetes' runtimes does, and connects to 127.0.0.1.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from aiohttp import WSMsgType, web

from bonny_dev.sandbox import Sandbox

PROTOCOL = "v4.channel.k8s.io"


@contextmanager
def node(sandbox: Sandbox, name: str) -> Iterator[None]:
    """A Node of that name, whose kubelet forwards ports. A sandbox's API server checks no kubelet's certificate."""
    loop, ports = asyncio.new_event_loop(), list[int]()
    ended = asyncio.Event()

    async def serve() -> None:
        app = web.Application()
        app.add_routes([web.get("/portForward/{namespace}/{pod}", _forward)])
        runner = web.AppRunner(app)
        await runner.setup()
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(sandbox.ca_file, sandbox.ca_file.with_suffix(".key"))
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
        ports.append(runner.addresses[0][1])
        await ended.wait()
        await runner.cleanup()

    def run() -> None:
        loop.run_until_complete(serve())
        loop.close()

    thread = threading.Thread(target=run, name="a kubelet", daemon=True)
    thread.start()
    try:
        Sandbox.eventually(lambda: bool(ports), within_seconds=30.0)
        status = {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": ports[0]}},
        }
        made = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}
        assert sandbox.request("POST", "/api/v1/nodes", made).status == 201
        yield
    finally:
        sandbox.delete("v1", "Node", name)
        loop.call_soon_threadsafe(ended.set)
        thread.join(30)


async def _forward(request: web.Request) -> web.StreamResponse:
    port = int(request.query["port"] if "port" in request.query else request.query["ports"])
    socket = web.WebSocketResponse(protocols=(PROTOCOL,))
    await socket.prepare(request)
    for channel in (0, 1):
        await socket.send_bytes(bytes([channel]) + port.to_bytes(2, "little"))
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError as error:
        await socket.send_bytes(b"\x01" + f"connection refused: {error.strerror}".encode())
        await socket.close()
        return socket

    async def back() -> None:
        while data := await reader.read(2**16):
            await socket.send_bytes(b"\x00" + data)
        await socket.close()

    task = asyncio.create_task(back())
    async for message in socket:
        if message.type is WSMsgType.BINARY and message.data[:1] == b"\x00":
            writer.write(message.data[1:])
    task.cancel()
    writer.close()
    return socket
