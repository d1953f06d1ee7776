"""kopf's contestant: a ConfigMap and a condition for each Widget. Run by `kopf run`.

Stock settings, but for what would do other work: no peering (`--standalone`), no Kubernetes events. The child is
written by the official client, as in kopf's tutorial, and one client serves all calls. kopf does not watch children,
and it handles an unchanged object again only where a timer is asked for, so here it does not.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import kopf
import kubernetes

from bench.harness.tally import Tally

tally = Tally()


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, memo: kopf.Memo, **_: Any) -> None:
    settings.posting.enabled = False
    kubernetes.config.load_kube_config()
    memo.core = kubernetes.client.CoreV1Api()


@kopf.on.create("example.com", "v1", "widgets")
@kopf.on.update("example.com", "v1", "widgets")
@kopf.on.resume("example.com", "v1", "widgets")
def reconcile(
    *, body: kopf.Body, spec: kopf.Spec, name: str, namespace: str, memo: kopf.Memo, patch: kopf.Patch, **_: Any
) -> None:
    tally.handled(name)
    child = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {"size": str(spec["size"])},
    }
    kopf.adopt(child)
    known = ready(body)
    publish(memo.core, namespace, name, child, new=known is None)
    generation = body.metadata["generation"]
    if known is None or known["observedGeneration"] != generation:
        patch.status["conditions"] = [
            {
                "type": "Ready",
                "status": "True",
                "reason": "Published",
                "message": f"size {spec['size']} is published",
                "observedGeneration": generation,
                "lastTransitionTime": known["lastTransitionTime"] if known else f"{datetime.now(UTC):%FT%TZ}",
            }
        ]


def ready(body: kopf.Body) -> dict[str, Any] | None:
    """The condition that this operator set before."""
    return next((known for known in body.status.get("conditions", ()) if known["type"] == "Ready"), None)


def publish(core: Any, namespace: str, name: str, child: dict[str, Any], *, new: bool) -> None:
    """Create the child or patch it; what most likely works comes first."""
    steps = [
        (lambda: core.create_namespaced_config_map(namespace, child), 409),
        (lambda: core.patch_namespaced_config_map(name, namespace, child), 404),
    ]
    (first, taken_back), (second, _) = steps if new else steps[::-1]
    try:
        first()
    except kubernetes.client.ApiException as error:
        if error.status != taken_back:
            raise
        second()
