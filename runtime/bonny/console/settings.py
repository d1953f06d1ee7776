"""Settings: the environment variables of the console."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pydantic.dataclasses import dataclass

from ..run.config import Port, Variable


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleSettings:
    """Settings of the console of one process; `VARIABLES` explains them."""

    port: Port | None = None
    """None: there is no console, and no run is remembered."""

    token: str = ""


# fmt: off
VARIABLES: Final[Mapping[str, Variable]] = {
    "BONNY_CONSOLE_PORT": Variable(
        "port", "a port from 1 to 65535, or 0 for any free one", "none",
        "Port on the loopback address that serves the state of queues, slots and streams as JSON."),
    "BONNY_CONSOLE_TOKEN": Variable(
        "token", "any text without blanks", "none",
        "Bearer token that the console demands. Without it, all programs of the machine may ask; in a "
        "cluster, users who may forward ports of the pod."),
}
# fmt: on
