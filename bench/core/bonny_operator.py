"""Our contestant: one controller with a handler that does nothing but note what it saw. Run as a script.

It names a `Kind`, not a `Version` class: of a kind of its own the runtime would keep the condition `Reconciled`, which
is a write for each object, while the peers write nothing.
"""

from __future__ import annotations

import sys
from typing import Any

from bench.harness.ours import run
from bench.harness.tally import Tally
from bonny import Axn, Controller, Kind, Scope

tally = Tally()


class WidgetController(Controller[Any]):
    resource = Kind("example.com/v1", "Widget", plural="widgets", scope=Scope.NAMESPACED)

    async def reconcile(self, axn: Axn[Any]) -> None:
        tally.note(axn.key.name, axn.resource["spec"]["size"])


if __name__ == "__main__":
    sys.exit(run(WidgetController))
