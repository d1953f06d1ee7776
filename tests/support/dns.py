"""DNS: the how-to page about external systems, and its fake API in a thread of its own."""

from __future__ import annotations

import asyncio
import sys
import threading
import types
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from tests.unit.test_how_to import HOW_TO, code

PAGE = "external-systems"


@cache
def page() -> Any:
    """The code of the page, as a module."""
    module = types.ModuleType("external_systems_page")
    sys.modules[module.__name__] = module
    exec(compile(code(PAGE), HOW_TO / f"{PAGE}.md", "exec"), vars(module))
    return module


@contextmanager
def served_dns() -> Iterator[Any]:
    """The fake, which answers while the test does not run an event loop."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="the DNS API", daemon=True)
    thread.start()
    fake = page().fake_dns()
    try:
        yield asyncio.run_coroutine_threadsafe(fake.__aenter__(), loop).result(10)
        asyncio.run_coroutine_threadsafe(fake.__aexit__(None, None, None), loop).result(10)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()
