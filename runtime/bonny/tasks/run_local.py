"""run-local: the operator on this machine, against a cluster of yours or a sandbox of its own.

The CRDs are installed first, by server-side apply; then the operator runs in this process as it would in a pod. At the
end it says how the permissions that were used differ from those of the manifest.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import Final

from ..api.crd import crds
from ..client.api import Client
from ..client.config import Cluster, Kubeconfig, find_cluster, own_namespace
from ..client.errors import Forbidden, Refusal, Unauthorized, Unreachable
from ..config import Config, namespaces_of
from ..errors import UsageError
from ..kinds import Kind
from ..main import defaults, serve
from ..manifest.rbac import needs
from ..manifest.recorder import record_permissions
from ..operator import Operator
from ..resource import Resource
from ..sandbox import Sandbox

__all__ = ["install_crds", "run"]

CRD: Final = Kind("apiextensions.k8s.io/v1", "CustomResourceDefinition")
# A fresh CRD is served within a second; ten are plenty for a slow machine.
ESTABLISHED_SECONDS: Final = 10.0
# Ctrl-C means now: a person waits.
GRACE_SECONDS: Final = 3.0


def run(operator: Operator, *, sandbox: bool, namespace: str, context: str) -> None:
    """Serve until Ctrl-C. Raises: `UsageError` when there is no cluster, or it does not let us in."""
    base = replace(
        defaults(operator),
        http_host="127.0.0.1",
        http_port=0,
        grace=GRACE_SECONDS,
        log_json=False,
        # At home a person wants to see each handling, also one that changed nothing.
        log_level=logging.DEBUG,
    )
    config = Config.from_environment(base=base)
    if namespace:
        config = replace(config, watch_namespaces=namespaces_of(namespace, where="--namespace"))
    if sandbox and context:
        raise UsageError("--sandbox and --context exclude each other: a sandbox is a cluster of its own")
    if sandbox:
        print("starting a sandbox ...", flush=True)
        with Sandbox() as started:
            print(f"  export KUBECONFIG={started.kubeconfig}\n  kubectl get crds", flush=True)
            _serve(operator, config, Kubeconfig(str(started.kubeconfig)))
    else:
        _serve(operator, config, find_cluster(kubeconfig=config.kubeconfig, context=context or config.context))


def _serve(operator: Operator, config: Config, cluster: Cluster) -> None:
    names = asyncio.run(install_crds(operator, cluster))
    print(f"installed {', '.join(names) or 'no CRDs'}; watching {config.watched}; Ctrl-C ends it", flush=True)
    namespace = config.pod_namespace or own_namespace()
    granted = needs(
        operator, namespace=namespace, watched=config.watch_namespaces, leader_election=config.leader_election
    )
    with record_permissions() as recorder:
        serve(operator, config, cluster)
    print(recorder.compared_with(granted), end="", flush=True)


async def install_crds(operator: Operator, cluster: Cluster) -> list[str]:
    """Apply the operator's CRDs and wait until they are served; returns their names.

    Raises: `UsageError` when the API server does not answer, does not know us, or does not permit it.
    """
    wanted = crds(operator.crds, operator.group)
    async with Client(cluster, user_agent=operator.user_agent, timeout=ESTABLISHED_SECONDS) as client:
        try:
            for crd in wanted:
                await client.apply(CRD, crd, manager=f"{operator.name}/run-local")
            await asyncio.gather(*(_established(client, crd) for crd in wanted))
        except Unreachable as error:
            raise UsageError(f"the API server of {cluster.source} does not answer: {error}") from error
        except Unauthorized as error:
            raise UsageError(f"the API server refuses the credentials of {cluster.source}: log in again") from error
        except Forbidden as error:
            raise UsageError(
                f"{cluster.source} may not install CRDs: {error.message}; ask an administrator to apply what "
                "`invoke manifest --local` writes"
            ) from error
        except Refusal as error:
            raise UsageError(f"the CRDs cannot be installed: {error}") from error
    return [crd["metadata"]["name"] for crd in wanted]


async def _established(client: Client, crd: Resource) -> None:
    name = crd["metadata"]["name"]
    try:
        async with asyncio.timeout(ESTABLISHED_SECONDS):
            while not _is_established(await client.get(CRD, name)):  # noqa: ASYNC110  a watch for one answer is too much
                await asyncio.sleep(0.05)
    except TimeoutError as error:
        raise UsageError(
            f"the CRD {name} is not served after {ESTABLISHED_SECONDS:.0f} s: kubectl describe it"
        ) from error


def _is_established(crd: Resource) -> bool:
    conditions = (crd.get("status") or {}).get("conditions") or ()
    return any(known["type"] == "Established" and known["status"] == "True" for known in conditions)
