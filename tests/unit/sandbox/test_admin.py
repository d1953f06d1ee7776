"""Admin: blocking requests to the API server of a sandbox, from any thread."""

from __future__ import annotations

import ssl
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from bonny_dev.sandbox.admin import Admin


def test_another_thread_never_sees_an_opener_without_its_handler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: a request of another thread used the opener before its handler was added: a TypeError."""
    admin = Admin(url="https://127.0.0.1:1", token="t", ca_file=Path("/nowhere"))
    seen: list[object] = []
    add_handler = urllib.request.OpenerDirector.add_handler

    def watched(opener: urllib.request.OpenerDirector, handler: Any) -> None:
        seen.append(admin._opener)
        add_handler(opener, handler)

    monkeypatch.setattr(ssl, "create_default_context", lambda **_: ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    monkeypatch.setattr(urllib.request.OpenerDirector, "add_handler", watched)

    assert admin._connection() is admin._connection()
    assert seen == [None]
