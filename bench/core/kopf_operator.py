"""kopf's contestant: a raw event handler that does nothing but note what it saw. Run by `kopf run`.

Stock settings, but for what would do other work: no peering (`--standalone`), no Kubernetes events.
"""

from __future__ import annotations

from typing import Any

import kopf

from bench.harness.tally import Tally

tally = Tally()


@kopf.on.startup()
async def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
    settings.posting.enabled = False


@kopf.on.event("example.com", "v1", "widgets")
async def seen(name: str, spec: kopf.Spec, **_: Any) -> None:
    tally.note(name, spec["size"])
