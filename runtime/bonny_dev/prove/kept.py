"""Kept: the administrator's requests of a stage, over one connection.

A life reads its objects a few times in each chapter. A new connection for each request, and a look at discovery for
each path, took more than half of the API server's time in a run.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPSConnection
from typing import Final

from bonny.resource import Resource

from ..sandbox.admin import Admin

# The API server closes connections that were idle for longer than this.
IDLE_SECONDS: Final = 30.0


class KeptAdmin(Admin):
    """One request at a time, from any thread. The path of a kind stays, as long as its definition does."""

    def __init__(self, admin: Admin) -> None:
        super().__init__(url=admin.url, token=admin.token, ca_file=admin.ca_file)
        self._kept: HTTPSConnection | None = None
        self._used = 0.0
        self._kinds: dict[tuple[str, str], Resource] = {}

    def close(self) -> None:
        """Close the connection; the next request opens another one."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    @contextmanager
    def _connected(self, timeout: float) -> Iterator[HTTPSConnection]:
        if time.monotonic() - self._used > IDLE_SECONDS:
            self.close()
        self._kept = self._kept or self._new_connection(timeout)
        try:
            yield self._kept
        except BaseException:
            self.close()  # a part of the answer may still come
            raise
        self._used = time.monotonic()

    def _discovered(self, root: str, api_version: str, kind: str) -> Resource:
        known = self._kinds.get((api_version, kind))
        if known is None:
            known = self._kinds[api_version, kind] = super()._discovered(root, api_version, kind)
        return known
