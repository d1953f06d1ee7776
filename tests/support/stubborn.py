"""An operator whose handlers swallow their cancellation, for the stop. Run as a script."""

import asyncio
import contextlib
import sys

from bonny import List, Operator, PeriodicTask, Reconciler, Resource, TaskRun
from bonny.main import main


async def go_on(what: str) -> None:
    """Never end."""
    print(f"{what} runs", flush=True)
    while True:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(3600)


async def task(run: TaskRun) -> None:
    """A periodic task."""
    await go_on("the task")


class Namespaces(Reconciler):
    """A server."""

    operation = List("v1", "Namespace", field_selector="metadata.name=default")
    frequency = 0.1

    async def reconcile(self, resource: Resource) -> None:
        """The handler."""
        await go_on("the server")


operator = Operator(
    name="stubborn",
    group="example.com",
    controllers=[PeriodicTask("stubborn", task, interval=0.1), Namespaces],
    version="1.0.0",
)

if __name__ == "__main__":
    sys.exit(main(operator))
