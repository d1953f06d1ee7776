"""Server: serves the page on the loopback address, and needs the token in its link.

Pages of strangers run in the same browser. So each request for data needs the token in a header of its own, which no
other page can set; a Host that is this machine, also after DNS rebinding; and no foreign Origin. Only a POST changes
something. The token is behind the `#` of the link: no request, no log and no Referer has it. The page loads nothing
from elsewhere, and never treats the text of objects as HTML.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Any, Final

from aiohttp import web

from bonny.client.api import Client
from bonny.client.config import Cluster
from bonny.client.errors import log_text_of
from bonny.errors import ApiError, UsageError
from bonny.operator import Operator

from ..inside.reading import Inside
from ..sandbox.ports import LOOPBACK
from .board import Board

TOKEN: Final = "X-Console-Token"  # noqa: S105  the name of a header
POLICY: Final = "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'"
HEADERS: Final = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Page:
    """The page of one operator. After `start`, `link` is for a browser."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._token = secrets.token_urlsafe(24)

    async def start(self, port: int) -> str:
        """Serve, and return the link. Raises: `UsageError` when the port is taken."""
        app = web.Application(middlewares=[self._guard], client_max_size=16 * 2**10)
        app.add_routes(
            [
                web.get("/", self._page),
                web.get("/api/overview", self._overview),
                web.get("/api/objects", self._objects),
                web.get("/api/object", self._object),
                web.get("/api/permissions", self._permissions),
                web.post("/api/act", self._act),
            ]
        )
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, LOOPBACK, port)
        try:
            await site.start()
        except OSError as error:
            raise UsageError(
                f"port {port} for the console is not free ({error.strerror}): choose another one by --port"
            ) from error
        self.port = self._runner.addresses[0][1]
        return f"http://{LOOPBACK}:{self.port}/#{self._token}"

    async def stop(self) -> None:
        """Serve no more."""
        await self._runner.cleanup()

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        own = f"http://{LOOPBACK}:{self.port}"
        foreign = request.headers.get("Origin", own) != own
        given = request.headers.get(TOKEN, "").encode()
        if request.host != f"{LOOPBACK}:{self.port}" or foreign:
            answer: web.StreamResponse = web.json_response({"problem": "only this machine may ask"}, status=403)
        elif request.path != "/" and not hmac.compare_digest(given, self._token.encode()):
            problem = "the link has another token: use the link that was printed last"
            answer = web.json_response({"problem": problem}, status=401)
        else:
            try:
                answer = await handler(request)
            except (ApiError, UsageError) as error:
                answer = web.json_response({"problem": log_text_of(error)}, status=422)
        answer.headers.update(HEADERS)
        return answer

    async def _page(self, _: web.Request) -> web.StreamResponse:
        nonce = secrets.token_urlsafe(16)
        text = files(__package__).joinpath("page.html").read_text(encoding="utf-8").replace("NONCE", nonce)
        policy = {"Content-Security-Policy": POLICY.format(nonce=nonce)}
        return web.Response(text=text, content_type="text/html", headers=policy)

    async def _overview(self, _: web.Request) -> web.StreamResponse:
        return web.json_response(await self._board.overview())

    async def _objects(self, request: web.Request) -> web.StreamResponse:
        asked = {name: request.query.get(name, "") for name in ("search", "outcome")}
        return web.json_response(await self._board.objects(request.query.get("kind", ""), **asked))

    async def _object(self, request: web.Request) -> web.StreamResponse:
        kind, namespace, name = (request.query.get(each, "") for each in ("kind", "namespace", "name"))
        return web.json_response(await self._board.one(kind, namespace, name))

    async def _permissions(self, _: web.Request) -> web.StreamResponse:
        return web.json_response(await self._board.permissions())

    async def _act(self, request: web.Request) -> web.StreamResponse:
        try:
            asked: dict[str, Any] = await request.json()
            names = [str(asked[each]) for each in ("kind", "namespace", "name", "action")]
        except (ValueError, KeyError, TypeError):
            return web.json_response({"problem": "the request names no object and action"}, status=400)
        await self._board.act(*names)
        return web.json_response({})


async def serve(
    cluster: Cluster,
    operator: Operator,
    *,
    namespace: str,
    reach: Callable[[Client], Inside],
    port: int = 0,
    opened: Callable[[str], None],
) -> None:
    """Serve the page until cancelled; `opened` gets its link, and `reach` returns the way to the operator.

    Raises: `UsageError`, `ApiError`.
    """
    async with Client(cluster, user_agent=f"{operator.user_agent} console") as client, reach(client) as inside:
        await client.connection()
        board = Board(client, operator, inside, namespace=namespace)
        page = Page(board)
        opened(await page.start(port))
        try:
            await board.run()
            await asyncio.Event().wait()  # an operator without kinds
        finally:
            await page.stop()
