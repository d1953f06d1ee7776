"""Workloads: the controllers and simulated kubelets of a sandbox, as a test sees them.

    sandbox.workloads.simulate("web-*", "not-ready=20")
    sandbox.workloads.simulate_claims("data-*", "pending")
    sandbox.workloads.evict("web-*")
    sandbox.workloads.reset()

Elsewhere: the process that does it (`bonny_dev.workloads`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

import bonny
from bonny.resource import Resource

from ..workloads.behaviours import (
    ANNOTATION,
    OF_CLAIMS,
    OF_PODS,
    RULES_KEY,
    RULES_NAME,
    RULES_NAMESPACE,
    Rule,
    Simulate,
    decode,
    encode,
    parse,
)
from .admin import Admin
from .binaries import obtain
from .cache import Progress
from .guard import Guard
from .processes import SandboxError, ServerProcess
from .versions import check

MANAGER: Final = "kube-controller-manager"
MERGE: Final = "application/merge-patch+json"
READY: Final = "workloads.ready"
FAILED: Final = ("Succeeded", "Failed")


def controller_manager(binaries: Mapping[str, Path], progress: Progress | None = None) -> Path:
    """kube-controller-manager of the same minor version as the API server in `binaries`.

    Raises: `SandboxError` when it cannot be had, or is of another version.
    """
    program = binaries.get(MANAGER) or obtain([MANAGER], progress)[MANAGER]
    ours, apiserver = check(program, name=MANAGER), check(binaries["kube-apiserver"], name="kube-apiserver")
    if ours[:2] != apiserver[:2]:
        raise SandboxError(
            f"{program} is of Kubernetes {ours} and kube-apiserver of {apiserver}: put both of one version into "
            "the folder of KUBEBUILDER_ASSETS"
        )
    return program


class Workloads:
    """Controllers and simulated kubelets that run beside the API server of a sandbox.

    Pods run nothing. `simulate` and the annotation `bonny.dev/simulate` make them misbehave.
    """

    process: ServerProcess
    """The process that plays kubelets, scheduler and provisioner, and runs kube-controller-manager."""

    def __init__(self, admin: Admin, *, guard: Guard, kubeconfig: Path, program: Path, start_seconds: float) -> None:
        """Start them, and return when they work. Raises: `SandboxError`, with the last lines, when they do not."""
        self._admin = admin
        ready = guard.folder / READY
        ready.unlink(missing_ok=True)
        module = "bonny_dev.workloads"
        self.process = ServerProcess(
            "workloads",
            [sys.executable, "-P", "-m", module, str(kubeconfig), str(program), str(guard.folder)],
            guard=guard,
            is_ready=ready.exists,
            start_seconds=start_seconds,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(package_folders())},
        )

    def simulate(self, pods: str, behaviour: str, *, namespace: str = "default") -> None:
        """Let pods misbehave from now on, existing and future ones, until `reset`.

        `pods` is a name with `*` and `?` as in file names; `behaviour` is what the annotation `bonny.dev/simulate`
        says: `not-ready`, `image-pull-error`, `crash`, `evict`, `hang` or `pending`, with a limit as in `crash=2`.
        The last call that fits a pod counts; the annotation has priority.
        Raises: `UsageError` for another behaviour.
        """
        parse(behaviour, allowed=OF_PODS)
        self._add(Rule("pods", namespace, pods, behaviour))

    def simulate_claims(self, claims: str, behaviour: str = Simulate.PENDING, *, namespace: str = "default") -> None:
        """Let PersistentVolumeClaims stay pending from now on: existing ones without a volume, and future ones.

        Raises: `UsageError` for another behaviour than `pending`.
        """
        parse(behaviour, allowed=OF_CLAIMS)
        self._add(Rule("persistentvolumeclaims", namespace, claims, behaviour))

    def evict(self, pods: str, *, namespace: str = "default") -> list[str]:
        """Let the pods that exist and have not ended fail with reason Evicted; returns their names."""
        evicted = []
        for pod in self._admin.items("v1", "Pod", namespace=namespace):
            name = pod["metadata"]["name"]
            if fnmatchcase(name, pods) and pod.get("status", {}).get("phase") not in FAILED:
                patch: Resource = {"metadata": {"annotations": {ANNOTATION: Simulate.EVICT}}}
                path = f"/api/v1/namespaces/{namespace}/pods/{name}"
                self._admin.request("PATCH", path, patch, content_type=MERGE)
                evicted.append(name)
        return evicted

    def reset(self) -> None:
        """Forget every `simulate`: pods and claims recover, unless a pod has ended or an annotation says otherwise."""
        self._write([])

    def _add(self, rule: Rule) -> None:
        live = self._admin.get("v1", "ConfigMap", RULES_NAME, namespace=RULES_NAMESPACE)
        self._write([*decode(live or {}), rule])

    def _write(self, rules: Iterable[Rule]) -> None:
        metadata = {"name": RULES_NAME, "namespace": RULES_NAMESPACE}
        self._admin.apply(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {RULES_KEY: encode(rules)}}
        )


def package_folders() -> list[str]:
    """Where both packages are: in a repository, the runtime is in vendor/ and the tools are installed."""
    return list(dict.fromkeys([str(Path(bonny.__file__).parents[1]), str(Path(__file__).parents[2])]))
