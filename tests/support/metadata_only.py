"""An operator that follows Secrets by their metadata alone, and gives each a ConfigMap followed the same way."""

import sys
from typing import Any

from bonny import Axn, Controller, Kind, Operator, Owned
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


operator = Operator(name="metadata-only", group="example.com", controllers=[SecretController], version="1.0.0")

if __name__ == "__main__":
    sys.exit(main(operator))
