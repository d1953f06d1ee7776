"""Our contestant: one controller with a handler that does nothing but note what it saw. Run as a script.

It names a `Kind`, not a `Version` class: of a kind of its own the runtime would keep the condition `Reconciled`, which
is a write for each object, while the peers write nothing. All other settings are stock, the log included.
It connects as in a pod, from a ServiceAccount's files: for a kubeconfig it would load the official client, which costs
0.1 s of CPU and 10 MB. `BENCH_PROFILE` names a file for a profile (`sampling`).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from bench.core.sampling import Sampler
from bench.core.tally import Tally
from bonny import Axn, Controller, Kind, Operator, Scope
from bonny.client.config import InCluster
from bonny.config import Config
from bonny.main import defaults, serve

tally = Tally()


class WidgetController(Controller[Any]):
    resource = Kind("example.com/v1", "Widget", plural="widgets", scope=Scope.NAMESPACED)

    async def reconcile(self, axn: Axn[Any]) -> None:
        tally.note(axn.key.name, axn.resource["spec"]["size"])


if __name__ == "__main__":
    if "BENCH_PROFILE" in os.environ:
        Sampler(Path(os.environ["BENCH_PROFILE"]))
    operator = Operator(name="bench", group="example.com", controllers=[WidgetController])
    cluster = InCluster(os.environ["BENCH_SERVER"], Path(os.environ["BENCH_ACCOUNT"]))
    sys.exit(serve(operator, Config.from_environment(base=defaults(operator)), cluster))
