"""Labels: the labels of every object of a manifest, and the ones that select its pods.

You need it to select the operator's pods, as a Service or a policy does.
"""

from __future__ import annotations

from bonny.errors import OptionError
from bonny.naming import is_label_value, is_qualified_name
from bonny.operator import Operator


def labels(operator: Operator) -> dict[str, str]:
    """The recommended labels and the operator's own, for everything in the manifest.

    Raises: `OptionError` for a label that Kubernetes refuses, or that selects the pods.
    """
    for key, value in operator.deploy.labels.items():
        where = f"the label {key}: {value} of operator {operator.name}"
        if key in selector(operator):
            raise OptionError(f"{where} would change which pods are its own: use another key")
        if not is_qualified_name(key) or not is_label_value(value):
            raise OptionError(
                f"{where} is not one that Kubernetes takes: use up to 63 letters and digits, with - _ . between them, "
                "in a key also a domain and a slash before them"
            )
    return {**selector(operator), "app.kubernetes.io/managed-by": "bonny", **operator.deploy.labels}


def selector(operator: Operator) -> dict[str, str]:
    """The labels that no other pods of the namespace have. They cannot change: Deployments keep theirs for good."""
    return {"app.kubernetes.io/name": operator.name, "app.kubernetes.io/component": "operator"}
