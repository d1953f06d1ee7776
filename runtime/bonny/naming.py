"""Naming: the rules of Kubernetes for names, and the names that follow from a kind.

You need it where a person types a name: tasks, the generator, `Version` classes.
You do not need it for the names of objects at run time; the API server checks those.

Each `check_` function returns its argument, or raises `UsageError` with the mistake, the rule and an example.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from .errors import OptionError, UsageError

# RFC 1123 and 1035 as Kubernetes applies them (k8s.io/apimachinery, pkg/util/validation).
LABEL_LENGTH: Final = 63
# The kind of a list, `WidgetList`, must be a label, too (apiextensions, spec.names.listKind).
KIND_LENGTH: Final = LABEL_LENGTH - len("List")
SUBDOMAIN_LENGTH: Final = 253
_DNS_1123_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_DNS_1035_LABEL: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_WORD: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
# A segment of a path as apimachinery takes it (IsValidPathSegmentName), without blanks and of at most 253 characters.
_SEGMENT: Final = re.compile(r"(?!\.\.?\Z)[^/%\x00-\x20\x7f]{1,253}")
_KIND: Final = re.compile(r"[A-Z][A-Za-z0-9]*")
VERSION: Final = re.compile(r"v[1-9][0-9]*((alpha|beta)[1-9][0-9]*)?")

# The API server refuses CRDs in these groups unless they carry an approval of the Kubernetes project (KEP 1111).
RESERVED_GROUPS: Final = ("k8s.io", "kubernetes.io")
APPROVAL: Final = "api-approved.kubernetes.io"
"""The annotation with that approval."""


class Names(NamedTuple):
    """The names under which the API server serves one kind."""

    kind: str
    plural: str
    singular: str
    short_names: tuple[str, ...] = ()


def names_of(kind: str) -> Names:
    """The names that follow from `kind`: `names_of("Policy")` has plural `policies` and singular `policy`.

    Does not: know irregular plurals (`Person` gives `persons`); name those on the `Version` class.
    """
    singular = check_kind(kind).lower()
    return Names(kind, _pluralize(singular), singular)


def _pluralize(singular: str) -> str:
    if re.search(r"[^aeiou]y$", singular):
        return singular[:-1] + "ies"
    if re.search(r"(s|x|z|ch|sh)$", singular):
        return singular + "es"
    return singular + "s"


def kebab_case(kind: str) -> str:
    """The name of a class as names of objects are written: `CronTabController` gives `cron-tab-controller`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", kind).lower()


def camel_case(name: str) -> str:
    """The wire name of the Python attribute `name`: `max_size` gives `maxSize`, `class_` gives `class`."""
    head, *rest = name.split("_")
    return head + "".join(part[:1].upper() + part[1:] for part in rest)


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


def check_dns_label(name: str, what: str = "name", example: str = "widgets-operator") -> str:
    """A name of an object or namespace, called `what` in the message."""
    if not is_label(name):
        raise UsageError(
            f"{name[:60]!r} is not a {what}: use lower-case letters, digits and hyphens, no hyphen at either end, "
            f"{LABEL_LENGTH} characters at most, for example {example}"
        )
    return name


def check_tuple(where: str, name: str, value: object, of: type | tuple[type, ...], example: str) -> None:
    """Check a class attribute that is a tuple of `of`: without its comma, a tuple of one is something else.

    `where` is the class. Raises: `OptionError`.
    """
    if not isinstance(value, tuple | list) or not all(isinstance(item, of) for item in value):
        raise OptionError(
            f"{where}.{name} is {value!r}: write a tuple, with a comma after a single one: {name} = ({example},)"
        )


RULE: Final = '{"apiGroups": [...], "resources": [...], "verbs": [...]}'


def check_rules(where: str, rules: object) -> None:
    """Check the RBAC rules that a class or a task names. `where` is its name. Raises: `OptionError`."""
    check_tuple(where, "rules", rules, Mapping, RULE)


def check_finalizer(name: str) -> str:
    """The name of a finalizer as the API server takes it: a domain, a slash and a word."""
    domain, slash, _ = name.partition("/")
    if not slash or not is_qualified_name(name) or not all(map(is_label, domain.split("."))):
        raise UsageError(
            f"{name[:60]!r} is not the name of a finalizer: use domain/name, {SUBDOMAIN_LENGTH} and {LABEL_LENGTH} "
            "characters at most, for example example.com/cleanup"
        )
    return name


def check_gvk(gvk: tuple[str, str]) -> tuple[str, str]:
    """Refuse what cannot be an API version and a kind. Raises: `OptionError`."""
    if not (is_subdomain(gvk[0].replace("/", ".", 1)) and is_label(gvk[1].lower())):
        raise OptionError(f"{gvk[1][:60]!r} ({gvk[0][:60]!r}) is not a kind: write for example 'apps/v1', 'Deployment'")
    return gvk


def is_subdomain(name: str) -> bool:
    """Whether `name` is a DNS subdomain, as the names of most objects are."""
    return len(name) <= SUBDOMAIN_LENGTH and all(map(_DNS_1123_LABEL.fullmatch, name.split(".")))


def is_qualified_name(name: str) -> bool:
    """Whether `name` can be the key of a label or an annotation: a word, with or without a domain and a slash."""
    domain, slash, word = name.rpartition("/")
    return _WORD.fullmatch(word) is not None and (is_subdomain(domain) or not slash)


def is_object_name(name: object) -> bool:
    """Whether an object, a namespace or a subresource can have this name: not all kinds have the names of DNS."""
    return isinstance(name, str) and _SEGMENT.fullmatch(name) is not None


def is_label_value(value: str) -> bool:
    """Whether `value` can be the value of a label: empty, or a word."""
    return not value or _WORD.fullmatch(value) is not None


def is_label(name: str) -> bool:
    """Whether `name` is a DNS label, as the names of namespaces are."""
    return len(name) <= LABEL_LENGTH and _DNS_1123_LABEL.fullmatch(name) is not None
