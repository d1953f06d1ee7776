"""Extra: how the console plugs into an operator, and its environment variables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic.dataclasses import dataclass

from ..extras import Extra, ExtraRun
from ..run.config import Port, Variable

if TYPE_CHECKING:
    from ..run.process import Process


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleSettings:
    """Settings of the console of one process; `Console.variables` explains them."""

    port: Port | None = None
    """None: there is no console, and no run is remembered."""

    token: str = ""


class Console(Extra):
    """The console, where `BONNY_CONSOLE_PORT` is set."""

    settings = ConsoleSettings
    # fmt: off
    variables = {
        "BONNY_CONSOLE_PORT": Variable(
            "port", "a port from 1 to 65535, or 0 for any free one", "none",
            "Port on the loopback address that serves the state of queues, slots and streams as JSON."),
        "BONNY_CONSOLE_TOKEN": Variable(
            "token", "any text without blanks", "none",
            "Bearer token that the console demands. Without it, all programs of the machine may ask; in a "
            "cluster, users who may forward ports of the pod."),
    }
    # fmt: on

    def run(self, process: Process) -> ExtraRun | None:
        if process.config.of(ConsoleSettings).port is None:
            return None
        from .server import ConsoleRun

        return ConsoleRun(process)


EXTRA = Console()
