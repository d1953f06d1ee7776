"""Labels: the labels of every object of a manifest, and the ones that select its pods.

You need it to select the operator's pods, as a Service or a policy does.
"""

from __future__ import annotations

from bonny.errors import OptionError
from bonny.operator import Operator


def labels(operator: Operator) -> dict[str, str]:
    """The recommended labels and the operator's own, for everything in the manifest.

    Raises: `OptionError` for a label that selects the pods.
    """
    for key in operator.deploy.labels.keys() & selector(operator).keys():
        raise OptionError(
            f"the label {key} of operator {operator.name} would change which pods are its own: choose another"
        )
    return {**selector(operator), "app.kubernetes.io/managed-by": "bonny", **operator.deploy.labels}


def selector(operator: Operator) -> dict[str, str]:
    """The labels that no other pods of the namespace have. They cannot change: Deployments keep theirs for good."""
    return {"app.kubernetes.io/name": operator.name, "app.kubernetes.io/component": "operator"}
