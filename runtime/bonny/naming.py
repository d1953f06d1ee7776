"""Naming: the rules of Kubernetes for names, and the names that follow from a kind.

Names of kinds, groups and versions in definitions are checked by the tools (`bonny_dev.naming`).

Each `check_` function returns its argument, or raises `UsageError` with the mistake, the rule and an example.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from .errors import OptionError, UsageError

# RFC 1123 and 1035 as Kubernetes applies them (k8s.io/apimachinery, pkg/util/validation).
LABEL_LENGTH: Final = 63
SUBDOMAIN_LENGTH: Final = 253
_DNS_1123_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_WORD: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
# A segment of a path as apimachinery takes it (IsValidPathSegmentName), without blanks and of at most 253 characters.
_SEGMENT: Final = re.compile(r"(?!\.\.?\Z)[^/%\x00-\x20\x7f]{1,253}")


def plural_of(kind: str) -> str:
    """The plural that follows from `kind`: `Policy` gives `policies`.

    Does not: know irregular plurals (`Person` gives `persons`); name those on the `Version` class.
    """
    singular = kind.lower()
    if not is_label(singular):
        raise UsageError(f"{kind[:60]!r} is not a kind: use CamelCase, for example CronTab")
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


def check_rules(where: str, rules: object) -> None:
    """Check the RBAC rules that a class or a task names. `where` is its name. Raises: `OptionError`."""
    check_tuple(where, "rules", rules, Mapping, '{"apiGroups": [...], "resources": [...], "verbs": [...]}')


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
