"""Options: those of several tasks, each with its help.

Elsewhere: the options that only one task has, which its function declares.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, TypeAlias

DryRun: TypeAlias = Annotated[bool, "show the changes as a diff, and write nothing"]
Definition: TypeAlias = Annotated[
    str, "the definition of the kind: a file, - for the standard input, or its name in the cluster"
]
ConsoleUrl: TypeAlias = Annotated[
    str,
    "address of the operator's own console: http://127.0.0.1:8090 (default: BONNY_CONSOLE_URL, else the leader's pod, "
    "through the API server)",
]
KubeContext: TypeAlias = Annotated[str, "context of your kubeconfig (default: the current one)"]


@dataclass(frozen=True, kw_only=True)
class NewApi:
    """The options of gen-api. An empty `group` is the group of the operator, or of the kind's other versions; an empty
    `version` is v1, of a kind that is new."""

    kind: Annotated[str, "kind in CamelCase: Widget; with --from-crd one of several in a file"]
    plural: Annotated[str, "plural of the kind in lower case: widgets"]
    version: Annotated[str, "v1, v1beta1, v2alpha1 (default v1, for a new kind; with --from-crd all versions)"] = ""
    cluster_scoped: Annotated[bool, "objects of the kind have no namespace"] = False
    short_name: Annotated[list[str] | None, "short name for kubectl; repeat it, or separate several with commas"] = None
    group: Annotated[str, "API group, if not the operator's own"] = ""

    @property
    def short_names(self) -> tuple[str, ...]:
        """The short names one by one; empty without any."""
        return tuple(separated(self.short_name))


@dataclass(frozen=True, kw_only=True)
class NewKind(NewApi):
    """The options of gen-controller."""

    kind: Annotated[str, "kind in CamelCase: Widget; with --for the name of the controller"]
    for_: Annotated[str, "an existing kind, such as apps/v1/Deployment: add a controller for it, and no API"] = ""
    finalizer: Annotated[bool, "add a finalizer: the controller cleans up before an object is deleted"] = False
    bare: Annotated[bool, "leave out the example, which publishes a field in a ConfigMap"] = False
    no_controller: Annotated[bool, "add only the API, a sample and a test, as gen-api does"] = False


@dataclass(frozen=True, kw_only=True)
class ManifestOptions:
    """The options of manifest."""

    image: Annotated[
        str, "container image to deploy (default: the image in pyproject.toml; without one there is no Deployment)"
    ] = ""
    namespace: Annotated[
        str, "namespace to deploy to (default: the operator's name); Helm and OLM name it themselves"
    ] = ""
    format_: Annotated[str, "yaml, helm, kustomize or olm (default yaml)"] = "yaml"
    out: Annotated[
        str,
        "file to write, or - for the terminal (default manifest.yaml); a folder for the other formats (default "
        "deploy/helm, deploy/kustomize, deploy/olm)",
    ] = ""
    local: Annotated[bool, "leave out the Deployment and webhooks: the operator runs on this machine"] = False
    crds_only: Annotated[
        bool, "leave out everything but the definitions of the operator's kinds (and who converts them)"
    ] = False
    with_: Annotated[list[str] | None, "parts to add, by name: service-monitor,alerts,dashboards"] = None
    without: Annotated[list[str] | None, "parts to leave out, by name: network-policy,service,pdb"] = None
    grant_in: Annotated[
        list[str] | None,
        "of an operator that watches a NamespaceSelector: namespaces that get a RoleBinding each (default: a "
        "ClusterRoleBinding for all)",
    ] = None
    force: Annotated[bool, "replace generated files, too, that were edited; for formats that are folders"] = False

    @property
    def include(self) -> list[str]:
        """The names in --with."""
        return separated(self.with_)

    @property
    def exclude(self) -> list[str]:
        """The names in --without."""
        return separated(self.without)


@dataclass(frozen=True, kw_only=True)
class LocalRun:
    """The options of run-local."""

    sandbox: Annotated[bool, "start a real API server on this machine for this run"] = False
    workloads: Annotated[
        bool, "with --sandbox: also controllers and simulated kubelets, so that Deployments become Available"
    ] = False
    reload: Annotated[bool, "restart the operator when a source file changes; the sandbox and its objects stay"] = False
    replicas: Annotated[int, "run so many processes, whose log lines begin with their number (default 1)"] = 1
    apply_samples: Annotated[bool, "apply the objects in samples/ first"] = False
    as_service_account: Annotated[bool, "run with the permissions of the manifest only, which shows missing ones"] = (
        False
    )
    namespace: Annotated[str, "watch only this namespace (default: as in operator.py)"] = ""
    context: KubeContext = ""


@dataclass(frozen=True, kw_only=True)
class Move:
    """The options of migrate-from."""

    source: Annotated[str, "kopf, kubebuilder, operator-sdk, bonny, metacontroller or shell-operator"]
    code: Annotated[
        str, "a module with handlers of kopf: list them, and write controllers; the cluster is not touched"
    ] = ""
    finalizer: Annotated[list[str] | None, "a further finalizer of the former operator; may be repeated"] = None
    annotation: Annotated[
        list[str] | None, "a further annotation of it; one that ends with / stands for all that begin so"
    ] = None
    manager: Annotated[list[str] | None, "a further field manager of its children, as `kubectl get` shows"] = None
    back: Annotated[bool, "the way back: replace the finalizers of this operator by that of the former one"] = False
    dry_run: Annotated[bool, "print the steps to do, and change nothing"] = False
    context: KubeContext = ""


def separated(flags: Iterable[str] | None) -> list[str]:
    """The names in a flag that may be given several times, and name several with commas. invoke makes None a list."""
    return [name.strip() for flag in flags or () for name in flag.split(",")]
