"""Our contestant: a ConfigMap and a condition for each Widget. Run as a script.

`BENCH_RESYNC_SECONDS` is the time after which unchanged objects are handled again, where that is not to be the default.
"""

from __future__ import annotations

import os
import sys

from bench.harness.ours import run
from bench.harness.tally import Tally
from bonny import Axn, Controller, Owned
from tests.support.handwritten import Widget

tally = Tally()


class WidgetController(Controller[Widget]):
    owns = (Owned("v1", "ConfigMap"),)
    reconcile_every = float(os.environ.get("BENCH_RESYNC_SECONDS", Controller.reconcile_every))

    async def reconcile(self, axn: Axn[Widget]) -> None:
        tally.handled(axn.key.name)
        axn.register_descendant(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": axn.key.name},
                "data": {"size": str(axn.spec.size)},
            }
        )
        axn.set_condition("Ready", True, message=f"size {axn.spec.size} is published")


if __name__ == "__main__":
    sys.exit(run(WidgetController))
