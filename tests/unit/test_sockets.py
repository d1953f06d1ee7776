"""Sockets of this machine, as tests count them."""

from __future__ import annotations

import socket
import sys

import pytest

from tests.support.sockets import State, between


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc/net")
def test_a_connection_that_was_closed_does_not_count() -> None:
    """Regression: a test waited for a number of connections, of which one that had been closed by others vanished."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            accepted, _ = server.accept()
            assert [found.state for found in between(remote=port)] == [State.ESTABLISHED]
        # Who closes first keeps it for a minute.
        accepted.close()
        assert between(remote=port) == []
