"""Naming: names that only generators and image tasks need: Python modules and classes, and container images.

Elsewhere: kinds, groups, versions and other names of Kubernetes (`bonny.naming`).
"""

from __future__ import annotations

import keyword
import re
from typing import Final

from bonny.errors import UsageError
from bonny.naming import VERSION, camel_case, check_kind, kebab_case

# Windows reserves these file names for devices, with any suffix.
_WINDOWS_DEVICES: Final = frozenset(
    ("aux", "con", "nul", "prn", *(f"{d}{n}" for d in ("com", "lpt") for n in range(10)))
)

# The grammar of an image reference (github.com/distribution/reference): [registry[:port]/]path[:tag][@digest].
# Upper-case letters are allowed only in the registry and the tag.
_HOST_PART: Final = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_DOMAIN: Final = rf"(?:{_HOST_PART}(?:\.{_HOST_PART})*|\[[a-fA-F0-9:]+\])(?::[0-9]{{1,5}})?"
_PATH_PART: Final = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_TAG: Final = r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}"
_DIGEST: Final = r"(?:sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})"
_IMAGE: Final = re.compile(rf"(?P<name>(?:{_DOMAIN}/)?{_PATH_PART}(?:/{_PATH_PART})*)(?::{_TAG})?(?:@{_DIGEST})?")
IMAGE_NAME_LENGTH: Final = 255

# Names that generated modules import from the runtime: a class of the same name would hide the import.
RESERVED_KINDS: Final = frozenset(
    ("Axn", "Controller", "Kind", "Operator", "Owned", "Resource", "Scope", "WithConditions", "WithObservedGeneration")
) | frozenset(("Column", "Condition", "Field", "Model", "PreserveUnknown", "Rule", "Spec", "Status", "Version"))


def snake_case(kind: str) -> str:
    """The module that holds `kind`: `CronTab` gives `cron_tab`, `HTTPRoute` gives `http_route`.

    Guarantees: the result can be imported, and be a file on Windows; an underscore is added where it could not
    (`Class` gives `class_`, `Con` gives `con_`).
    """
    module = kebab_case(kind).replace("-", "_")
    return f"{module}_" if keyword.iskeyword(module) or module in _WINDOWS_DEVICES else module


def check_class(kind: str, what: str = "kind", *, example: str = "CronTab") -> str:
    """A kind that the API server accepts and a generated module can define as a class; returns it.

    Raises: `UsageError` with the mistake, the rule and an example.
    """
    check_kind(kind, what, example=example)
    if keyword.iskeyword(kind):
        raise UsageError(f"{kind[:60]!r} cannot be a {what} here: it is a keyword of Python; use for example My{kind}")
    if kind in RESERVED_KINDS:
        raise UsageError(
            f"{kind[:60]!r} cannot be a {what} here: a class of the runtime has this name; "
            f"use a longer one, for example My{kind}"
        )
    return kind


def module_to_kind(module: str) -> str:
    """The kind for a module's name: `widgets_operator.api.v1.cron_tab` gives `CronTab`."""
    name = camel_case(module.rpartition(".")[2])
    return name[:1].upper() + name[1:]


def module_version(module: str) -> str:
    """The version in a dotted path: `App.V1Alpha1.Widget` gives `v1alpha1`; `v1` where it has none."""
    versions = (part.lower() for part in module.split("."))
    return next((version for version in versions if VERSION.fullmatch(version)), "v1")


def check_image(image: str) -> str:
    """A container image reference: registry with port, path, tag and digest, as container runtimes read it.

    Raises: `UsageError` with the mistake, the rule and an example.
    """
    match = _IMAGE.fullmatch(image)
    if match is None or len(match["name"]) > IMAGE_NAME_LENGTH:
        raise UsageError(
            f"{image!r} is not a container image: use [registry[:port]/]path[:tag][@digest] with a lower-case path, "
            "for example registry.example.com/widgets-operator:1.0.0"
        )
    return image
