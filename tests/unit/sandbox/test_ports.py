"""Free ports, and the sentence for a taken one."""

from __future__ import annotations

import socket

import pytest

from bonny.errors import UsageError
from bonny_dev.sandbox.ports import check_free, free_ports, is_free


def test_free_ports_are_different_and_outside_the_ephemeral_range() -> None:
    ports = free_ports(20)

    assert len(set(ports)) == 20
    assert all(10_000 <= port < 30_000 and is_free(port) for port in ports)


def test_a_taken_port_is_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            UsageError, match=f"port {port} of 127.0.0.1 is in use: stop the process that listens on it"
        ):
            check_free(port)


@pytest.mark.parametrize("port", [-1, 65536])
def test_a_port_that_does_not_exist_is_one_sentence(port: int) -> None:
    with pytest.raises(UsageError, match=f"port {port} does not exist: use 1 to 65535"):
        check_free(port)
