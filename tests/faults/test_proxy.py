"""The proxy itself: what it does not leave behind."""

from __future__ import annotations

import gc
import threading
import urllib.request
from contextlib import suppress

from bonny.sandbox import Sandbox
from bonny.testing.faults import FaultProxy, is_any


def test_a_request_that_was_never_answered_leaves_no_socket_behind(sandbox: Sandbox) -> None:
    """Regression: its farewell to the API server outlived the proxy; whichever test came next was blamed for it."""

    def ask(proxy: FaultProxy) -> None:
        # Whether the answer was quicker than the pause does not matter here; mostly there is none.
        with suppress(OSError):
            urllib.request.urlopen(f"{proxy.url}/api/v1/namespaces", timeout=10).close()

    try:
        with FaultProxy(sandbox) as proxy:
            ask(proxy)
            sandbox.apiserver.pause()
            asking = threading.Thread(target=ask, args=(proxy,))
            asking.start()
            sandbox.eventually(lambda: proxy.count(is_any) == 2)
    finally:
        sandbox.apiserver.resume()
    asking.join()

    gc.collect()  # a socket that was left open is a warning, and warnings are errors
