"""Chromium: a headless browser that a test drives, by its own protocol (the DevTools protocol over a WebSocket)."""

from __future__ import annotations

import asyncio
import itertools
import shutil
import signal
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import ClientSession, ClientWebSocketResponse, WSMsgType

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
# A browser on a busy machine starts slowly.
START_SECONDS = 60.0
UNTIL_SECONDS = 30.0


class Browser:
    """One window."""

    def __init__(self, socket: ClientWebSocketResponse) -> None:
        self._socket = socket
        self._ids = itertools.count(1)
        self.complaints: list[str] = []
        """What the page wrote to the console of the browser as errors, and exceptions that nothing caught."""

    async def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Send one command and return its result."""
        number = next(self._ids)
        await self._socket.send_json({"id": number, "method": method, "params": params})
        while True:
            message = await self._socket.receive()
            assert message.type is WSMsgType.TEXT, message
            found = message.json()
            self._heard(found)
            if found.get("id") == number:
                assert "error" not in found, found
                result: dict[str, Any] = found["result"]
                return result

    def _heard(self, found: dict[str, Any]) -> None:
        params = found.get("params") or {}
        if found.get("method") == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.complaints.append(str((details.get("exception") or {}).get("description") or details["text"]))
        if found.get("method") == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.complaints.append(str(params["entry"]["text"]))

    async def show(self, *, width: int, height: int, dark: bool) -> None:
        """Set the size of the window, and the scheme that the person prefers."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        await self.send("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.send("Emulation.setEmulatedMedia", features=[scheme])

    async def open(self, url: str) -> None:
        """Go to an address, as a new page."""
        await self.send("Page.navigate", url="about:blank")
        await self.send("Page.navigate", url=url)

    async def value(self, script: str) -> Any:
        """The value of an expression in the page; a promise is awaited."""
        found = await self.send("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    async def until(self, script: str) -> Any:
        """The value of an expression as soon as it is true."""
        ends = time.monotonic() + UNTIL_SECONDS
        while not (found := await self.value(script)):
            assert time.monotonic() < ends, f"{script} is {found!r}; the page shows {await self.value(TEXT)!r}"
            await asyncio.sleep(0.02)
        return found

    async def press(self, key: str, *, shift: bool = False) -> None:
        """Press and release a key, as `Tab`, `Enter` or `/`."""
        codes = {"Tab": 9, "Enter": 13, " ": 32}
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        event = {"key": key, "windowsVirtualKeyCode": codes.get(key, 0), "modifiers": 8 if shift else 0}
        await self.send("Input.dispatchKeyEvent", type="keyDown", text=text, **event)
        await self.send("Input.dispatchKeyEvent", type="keyUp", **event)


TEXT = "document.body && document.body.innerText"


@asynccontextmanager
async def chromium(profile: Path) -> AsyncIterator[Browser]:
    """Run the browser with an empty profile in that folder."""
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0", f"--user-data-dir={profile}"]
    quiet = ["--no-first-run", "--disable-background-networking", "--disable-dev-shm-usage"]
    process = subprocess.Popen(  # noqa: ASYNC220  it lives as long as the block
        [str(CHROMIUM), *flags, *quiet, "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        address = await _address(process, profile / "DevToolsActivePort")
        async with ClientSession() as http:
            async with http.put(f"{address}/json/new?about:blank") as answer:
                window = (await answer.json())["webSocketDebuggerUrl"]
            async with http.ws_connect(window, max_msg_size=0) as socket:
                browser = Browser(socket)
                for domain in ("Page", "Runtime", "Log"):
                    await browser.send(f"{domain}.enable")
                yield browser
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            await asyncio.to_thread(process.wait, 10)
        except subprocess.TimeoutExpired:
            process.kill()
            await asyncio.to_thread(process.wait)


async def _address(process: subprocess.Popen[bytes], file: Path) -> str:
    ends = time.monotonic() + START_SECONDS
    while not (file.exists() and file.read_text("utf-8").strip()):  # noqa: ASYNC240  a small file
        assert process.poll() is None, f"Chromium ended with {process.returncode}"
        assert time.monotonic() < ends, "Chromium does not start"
        await asyncio.sleep(0.02)
    return f"http://127.0.0.1:{file.read_text('utf-8').splitlines()[0]}"  # noqa: ASYNC240
