"""The proxy itself: what it does not leave behind."""

from __future__ import annotations

import gc
import threading
import urllib.request
from contextlib import ExitStack, suppress

from bonny.sandbox import Sandbox
from bonny.testing.faults import FaultProxy, is_any
from tests.support.processes import frozen


def test_a_request_that_was_never_answered_leaves_no_socket_behind(sandbox: Sandbox) -> None:
    """Regression: its farewell to the API server outlived the proxy; whichever test came next was blamed for it."""
    answered: list[bool] = []

    def ask(proxy: FaultProxy) -> None:
        with suppress(OSError):
            urllib.request.urlopen(f"{proxy.url}/api/v1/namespaces", timeout=10).close()
            answered.append(True)

    with ExitStack() as until_it_ended, FaultProxy(sandbox) as proxy:
        ask(proxy)
        until_it_ended.enter_context(frozen(sandbox))
        asking = threading.Thread(target=ask, args=(proxy,))
        asking.start()
        sandbox.eventually(lambda: proxy.count(is_any) == 2)
    asking.join()

    assert answered == [True], "the second one was not"
    gc.collect()  # a socket that was left open is a warning, and warnings are errors
