"""Naming: names that generators, definitions and image tasks need: kinds, groups, versions, Python modules, images.

Elsewhere: names that a running operator checks, too (`bonny.naming`).

Each `check_` function returns its argument, or raises `UsageError` with the mistake, the rule and an example.
"""

from __future__ import annotations

import keyword
import re
from typing import Final

from bonny.errors import UsageError
from bonny.naming import LABEL_LENGTH, SUBDOMAIN_LENGTH, camel_case, is_label, kebab_case

# The kind of a list, `WidgetList`, must be a label, too (apiextensions, spec.names.listKind).
KIND_LENGTH: Final = LABEL_LENGTH - len("List")
_DNS_1035_LABEL: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_KIND: Final = re.compile(r"[A-Z][A-Za-z0-9]*")
VERSION: Final = re.compile(r"v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?")

# The API server refuses CRDs in these groups unless they carry an approval of the Kubernetes project (KEP 1111).
RESERVED_GROUPS: Final = ("k8s.io", "kubernetes.io")
APPROVAL: Final = "api-approved.kubernetes.io"
"""The annotation with that approval."""

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


def check_kind(kind: str, what: str = "kind", *, example: str = "CronTab") -> str:
    """A kind that the API server accepts; `what` and `example` adapt the message to other names that follow the same
    rule."""
    if not _KIND.fullmatch(kind) or len(kind) > KIND_LENGTH:
        raise UsageError(
            f"{kind[:60]!r} is not a {what}: use CamelCase, an upper-case letter and then letters and digits, "
            f"{KIND_LENGTH} at most, for example {example}"
        )
    return kind


def check_plural(plural: str, what: str = "plural", *, example: str = "crontabs") -> str:
    """A plural that the API server accepts in the names of resources and CRDs; `what` and `example` adapt the message
    to other names that follow the same rule."""
    if not _DNS_1035_LABEL.fullmatch(plural) or len(plural) > LABEL_LENGTH:
        raise UsageError(
            f"{plural[:60]!r} is not a {what}: use lower-case letters, digits and hyphens, a letter first and no "
            f"hyphen last, {LABEL_LENGTH} characters at most, for example {example}"
        )
    return plural


def check_version(version: str) -> str:
    """An API version in the form that Kubernetes can sort by stability."""
    if not VERSION.fullmatch(version) or len(version) > LABEL_LENGTH:
        raise UsageError(
            f"{version[:60]!r} is not an API version: use v and a number, then alpha or beta and a number for unstable "
            "ones, for example v1, v1beta1 or v2alpha1"
        )
    return version


def check_group(group: str, *, approved: bool = False) -> str:
    """An API group for your kinds: a DNS name with a dot, outside the groups of the Kubernetes project.

    `approved`: its definitions carry the approval of the project.
    """
    labels = group.split(".")
    if len(labels) < 2 or len(group) > SUBDOMAIN_LENGTH or not all(is_label(label) for label in labels):
        raise UsageError(
            f"{group[:60]!r} is not an API group: use a domain name that you own, lower-case, with at least one dot "
            f"and {SUBDOMAIN_LENGTH} characters at most, for example example.com"
        )
    if not approved and any(group == reserved or group.endswith(f".{reserved}") for reserved in RESERVED_GROUPS):
        raise UsageError(
            f"{group[:60]!r} cannot be your API group: {' and '.join(RESERVED_GROUPS)} are reserved for the Kubernetes "
            "project; use a domain name that you own, for example example.com. Approved definitions name the approval "
            f"in crd_annotations of their class, as {APPROVAL}"
        )
    return group


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
