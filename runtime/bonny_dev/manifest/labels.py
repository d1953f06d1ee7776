"""Labels: what marks every object of a manifest, and by which of them its pods are found.

You need it to select the operator's pods, as a Service or a policy does.
"""

from __future__ import annotations

import re
from typing import Final

from bonny.errors import OptionError
from bonny.run.operatorlike import OperatorLike

__all__ = ["labels", "selector"]

NAME: Final = "app.kubernetes.io/name"
COMPONENT: Final = "app.kubernetes.io/component"
# k8s.io/apimachinery, pkg/util/validation: IsQualifiedName, IsValidLabelValue.
_WORD: Final = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_KEY: Final = re.compile(rf"(?=.{{1,317}}$)([a-z0-9]([-a-z0-9.]{{0,251}}[a-z0-9])?/)?{_WORD}")
_VALUE: Final = re.compile(rf"({_WORD})?")


def labels(operator: OperatorLike) -> dict[str, str]:
    """The recommended labels and those of `Operator(labels=...)`, on everything in the manifest.

    Raises: `OptionError` for a label that Kubernetes refuses, or that selects the pods.
    """
    for key, value in operator.deploy.labels.items():
        where = f"the label {key}: {value} of operator {operator.name}"
        if key in selector(operator):
            raise OptionError(f"{where} would change which pods are its own: use another key")
        if not _KEY.fullmatch(key) or not _VALUE.fullmatch(value):
            raise OptionError(
                f"{where} is not one that Kubernetes takes: use up to 63 letters and digits, with - _ . between them, "
                "in a key also a domain and a slash before them"
            )
    return {**selector(operator), "app.kubernetes.io/managed-by": "bonny", **operator.deploy.labels}


def selector(operator: OperatorLike) -> dict[str, str]:
    """The labels that no other pods of the namespace have. They cannot change: Deployments keep theirs for good."""
    return {NAME: operator.name, COMPONENT: "operator"}
