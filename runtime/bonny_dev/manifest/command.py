"""Command: what `invoke manifest` does, without invoke.

write(render(operator, image="registry.example.com/widgets-operator:1.0.0"), "manifest.yaml")
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path

from bonny.errors import UsageError
from bonny.naming import check_dns_label, check_image
from bonny.operator import Operator

from .bundle import documents, to_yaml

__all__ = ["DEFAULT_OUT", "render", "write"]

DEFAULT_OUT = "manifest.yaml"
STDOUT = "-"


def render(
    operator: Operator,
    *,
    image: str | None = None,
    namespace: str | None = None,
    local: bool = False,
    crds_only: bool = False,
    include: Collection[str] = (),
    exclude: Collection[str] = (),
) -> str:
    """The manifest as YAML; `namespace` is where the operator is deployed (default: its own name).

    Raises: `UsageError` for an impossible image, namespace or part, and for declarations that do not fit together.
    """
    if image is not None:
        check_image(image)
    where = check_dns_label(operator.name if namespace is None else namespace, "namespace")
    if where == "default" or where.startswith("kube-"):
        raise UsageError(
            f"the operator cannot be deployed to {where}: the manifest sets the pod security of its namespace, and "
            f"this one is used by others; choose one of its own, for example --namespace {operator.name}"
        )
    if crds_only and include:
        raise UsageError("--crds-only leaves out what --with names: use one of the two")
    return to_yaml(
        documents(
            operator,
            image=image,
            namespace=where,
            local=local,
            crds_only=crds_only,
            include=include,
            exclude=exclude,
        )
    )


def write(text: str, out: str = DEFAULT_OUT) -> None:
    """Write the manifest to the file `out`, all or nothing, or to the standard output for `-`.

    Raises: `UsageError` when the file cannot be written.
    """
    if out == STDOUT:
        sys.stdout.write(text)
        return
    target = Path(out)
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise _unwritable(out, error) from None
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        # mkstemp makes files for nobody but the owner; a manifest holds no secrets and is committed.
        Path(name).chmod(0o644)
        Path(name).replace(target)
    except OSError as error:
        Path(name).unlink()
        raise _unwritable(out, error) from None


def _unwritable(out: str, error: OSError) -> UsageError:
    return UsageError(
        f"the manifest cannot be written to {out} ({error.strerror}): name another file, or - for the screen"
    )
