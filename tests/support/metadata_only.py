"""An operator that follows by their metadata alone: Secrets, with a ConfigMap each, and Widgets, with a status each."""

import sys
from typing import Any

from bonny import Axn, Controller, Kind, Operator, Owned, Scope
from bonny.main import main


class SecretController(Controller[Any]):
    resource = Kind("v1", "Secret", label_selector="watched=yes", metadata_only=True)
    owns = (Owned("v1", "ConfigMap", metadata_only=True),)
    reconcile_every = 1.0

    async def reconcile(self, axn: Axn[Any]) -> None:
        child = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": axn.key.name},
            "data": {"fields": ",".join(sorted(axn.resource)), "kind": axn.resource["kind"]},
        }
        axn.register_descendant(child)
        held = axn.observed(child)
        print(f"seen {axn.key} {axn.action.value} {'nothing' if held is None else sorted(held)}", flush=True)


class WidgetController(Controller[Any]):
    resource = Kind("example.com/v1", "Widget", plural="widgets", scope=Scope.NAMESPACED, metadata_only=True)
    reconcile_every = 1.0

    async def reconcile(self, axn: Axn[Any]) -> None:
        axn.set_condition("Ready", True)


operator = Operator(
    name="metadata-only", group="example.com", controllers=[SecretController, WidgetController], version="1.0.0"
)

if __name__ == "__main__":
    sys.exit(main(operator))
