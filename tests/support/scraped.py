"""An operator whose /metrics are over TLS, for tests. Run as a script, or imported for its manifest."""

import sys
from typing import Any

from bonny import Controller, Deploy, Kind, Operator
from bonny.main import main

NAME = "scraped-operator"


class Maps(Controller[Any]):
    resource = Kind("v1", "ConfigMap", namespace=NAME)

    async def reconcile(self, axn: Any) -> None: ...


operator = Operator(
    name=NAME, group="scraped.example.com", controllers=[Maps], deploy=Deploy(secure_metrics=True, replicas=2)
)


if __name__ == "__main__":
    from bonny.tls import rotation

    # So long a leader waits before it serves its first certificate.
    rotation.URGENT_SECONDS = 0.1
    sys.exit(main(operator))
