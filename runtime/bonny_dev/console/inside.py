"""Inside: reads the operator's own console (`bonny.console`)."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Final

from aiohttp import ClientError, ClientSession, ClientTimeout

# It answers from memory.
SECONDS: Final = 5.0
ABSENT: Final = (
    "the operator's memory is not shown: add the extra `console`, set BONNY_CONSOLE_PORT for the operator, and name "
    "its address, as docs/how-to/watch-an-operator.md shows"
)


class Inside:
    """One operator's console at `url`; empty: there is none. To be entered."""

    def __init__(self, url: str, token: str = "") -> None:
        self._url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    async def __aenter__(self) -> Inside:
        self._session = ClientSession(headers=self._headers, timeout=ClientTimeout(total=SECONDS))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._session.close()

    async def ask(self, path: str, **query: str) -> dict[str, Any]:
        """The answer; or, under `problem`, a sentence with the reason why there is none."""
        if not self._url:
            return {"problem": ABSENT}
        try:
            async with self._session.get(f"{self._url}{path}", params=query) as answer:
                if answer.status != 200:
                    return {"problem": f"the operator at {self._url} answers {answer.status} to {path}"}
                found: dict[str, Any] = await answer.json()
                return found
        except (ClientError, TimeoutError, ValueError) as error:
            return {"problem": f"the operator at {self._url} does not answer ({type(error).__name__})"}
