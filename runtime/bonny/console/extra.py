"""Extra: how the console plugs into an operator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..extras import Extra, ExtraRun
from .settings import VARIABLES, ConsoleSettings

if TYPE_CHECKING:
    from ..run.process import Process


class Console(Extra):
    """The console, where `BONNY_CONSOLE_PORT` is set."""

    settings = ConsoleSettings
    variables = VARIABLES

    def run(self, process: Process) -> ExtraRun | None:
        if process.config.of(ConsoleSettings).port is None:
            return None
        from .server import ConsoleRun

        return ConsoleRun(process)


EXTRA = Console()
