"""An operator whose objects use all of the pipeline, for tests in which its process must die. Run as a script.

A Thing has a finalizer, a child for each of its parts, and a Deployment that cannot be changed, only replaced. Parts
whose name begins with `far` have no owner reference, so that only the finalizer removes them.
"""

import os
import sys

from bonny import Axn, Controller, Operator, Owned, Resource
from bonny.core.watch import WatchOptions
from bonny.main import main
from tests.support.things import GROUP, Thing, config_map

# Fault tests wait for the end of silent watches, which is minutes away by default.
WATCH_SECONDS = float(os.environ.get("TEST_WATCH_SECONDS", "200"))


def deployment(name: str, *, label: str, image: str) -> Resource:
    """Its selector, made of the label, is immutable."""
    labels = {"app": label}
    # Stored as "1": what was sent never equals what is live.
    container = {"name": "main", "image": image, "resources": {"limits": {"cpu": "1000m"}}}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": labels}, "template": template},
    }


class PipelinedController(Controller[Thing]):
    owns = (Owned("v1", "ConfigMap"), Owned("apps/v1", "Deployment"))
    reconcile_every = float(os.environ.get("TEST_RECONCILE_EVERY", "36000"))

    async def reconcile(self, axn: Axn[Thing]) -> None:
        for part in axn.spec.parts:
            axn.register_descendant(config_map(part, size=str(axn.spec.size)), omit_owner_ref=part.startswith("far"))
        if axn.spec.label:
            wanted = deployment(axn.key.name, label=axn.spec.label, image=axn.spec.image)
            axn.register_descendant(wanted, group=1, recreate=True)
        axn.update_status(lambda status: {**status, "parts": len(axn.spec.parts)})
        axn.set_condition("Ready", True, message=f"size {axn.spec.size}")

    async def finalize(self, axn: Axn[Thing]) -> None:
        print(f"finalized {axn.key}", flush=True)


operator = Operator(
    name="pipelined",
    group=GROUP,
    controllers=[PipelinedController],
    version="1.0.0",
    watch_options=WatchOptions(timeout=(WATCH_SECONDS, WATCH_SECONDS), grace=min(15.0, WATCH_SECONDS)),
)

if __name__ == "__main__":
    sys.exit(main(operator))
