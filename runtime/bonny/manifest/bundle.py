"""Bundle: all objects of a manifest, in the order in which one pass of `kubectl apply` accepts them, as YAML.

You need it to install an operator or only its definitions: `documents(operator, ...)`, `to_yaml(...)`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import yaml

from ..api.crd import crds
from ..resource import Resource
from .deployment import deployment, labels
from .operatorlike import OperatorLike
from .rbac import CLUSTER, grants
from .roles import aggregated_roles

__all__ = ["documents", "to_yaml"]

RBAC: Final = "rbac.authorization.k8s.io"
# Lists of names up to this many letters stand in one line, such as verbs.
SHORT: Final = 60


def documents(operator: OperatorLike, *, image: str | None, namespace: str, local: bool = False) -> list[Resource]:
    """The objects that an operator needs in a cluster, each after what it refers to.

    Without an image, or for `local` work, there is no Deployment: the operator runs outside of the cluster.
    Raises: `OptionError` when the declarations do not fit together.
    """
    marks = labels(operator)
    parts = [_namespace(namespace), *crds(operator.crds, operator.group), _service_account(operator, namespace)]
    for place, rules in grants(operator, namespace=namespace).items():
        parts += _role(operator, rules, place=place, namespace=namespace)
    parts += aggregated_roles(operator)
    for part in parts:
        part["metadata"]["labels"] = {**marks, **part["metadata"].get("labels", {})}
    if image is not None and not local:
        parts.append(deployment(operator, image=image, namespace=namespace))
    return parts


def to_yaml(objects: Iterable[Resource]) -> str:
    """The objects as one YAML text; equal objects give equal bytes."""
    return "---\n".join(yaml.dump(each, Dumper=_Dumper, sort_keys=False, width=120) for each in objects)


def _namespace(namespace: str) -> Resource:
    levels = {f"pod-security.kubernetes.io/{mode}": "restricted" for mode in ("enforce", "warn")}
    versions = {f"pod-security.kubernetes.io/{mode}-version": "latest" for mode in ("enforce", "warn")}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": namespace, "labels": dict(sorted((levels | versions).items()))},
    }


def _service_account(operator: OperatorLike, namespace: str) -> Resource:
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": operator.name, "namespace": namespace},
        # Only the operator's own pod asks for the token.
        "automountServiceAccountToken": False,
    }


def _role(operator: OperatorLike, rules: list[Resource], *, place: str, namespace: str) -> Iterator[Resource]:
    kind = "ClusterRole" if place == CLUSTER else "Role"
    metadata = {"name": operator.name} if place == CLUSTER else {"name": operator.name, "namespace": place}
    yield {"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": dict(metadata), "rules": rules}
    yield {
        "apiVersion": f"{RBAC}/v1",
        "kind": f"{kind}Binding",
        "metadata": dict(metadata),
        "roleRef": {"apiGroup": RBAC, "kind": kind, "name": operator.name},
        "subjects": [{"kind": "ServiceAccount", "name": operator.name, "namespace": namespace}],
    }


class _Dumper(yaml.SafeDumper):
    """Written for readers: no anchors, several lines as a block, short lists in one line."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    if _like_a_number(text):
        style = "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _like_a_number(text: str) -> bool:
    """Kubernetes reads more strings as numbers than PyYAML does, `1e3` and `0o7` among them."""
    readers: tuple[Callable[[str], float], ...] = (float, lambda digits: int(digits, 0))
    for read in readers:
        with contextlib.suppress(ValueError):
            read(text)
            return True
    return False


def _list(dumper: yaml.SafeDumper, items: list[Any]) -> yaml.SequenceNode:
    short = all(isinstance(item, str) for item in items) and sum(map(len, items)) < SHORT
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=short)


_Dumper.add_representer(str, _text)
_Dumper.add_representer(list, _list)
