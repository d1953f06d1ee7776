"""Settings of the fault tests."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """The proxy resets connections on purpose, in a loop of its own that ends with the test: the sockets of a reset TLS
    connection may be collected after that, which is no leak of the operator, a process of its own.
    """
    config.addinivalue_line("filterwarnings", "default:unclosed:ResourceWarning")
