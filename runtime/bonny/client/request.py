"""Request: the path, the query and the other parts of a request, as they are sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from urllib.parse import quote, urlencode

from ..kinds import Kind


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """A request; parameters of the query without a value are left out."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    limit_bytes: int | None = None
    """The longest answer that is read. Default: the transport's own limit."""


def path_of(kind: Kind, namespace: str | None = None, name: str = "", subresource: str = "") -> str:
    """The URL path of a kind's collection, or of one object, or of its subresource."""
    parts = ["/apis" if kind.group else "/api", kind.api_version]
    if namespace:
        parts += ["namespaces", quote(namespace, safe="")]
    parts += [kind.plural, *(quote(part, safe="") for part in (name, subresource) if part)]
    return "/".join(parts)


def target_of(path: str, query: Mapping[str, str]) -> str:
    """Path and query as they are sent; parameters without a value are left out."""
    encoded = _encoded(tuple(query.items()))
    return f"{path}?{encoded}" if encoded else path


@lru_cache(maxsize=64)  # a controller applies with the same parameters each time
def _encoded(query: tuple[tuple[str, str], ...]) -> str:
    return urlencode([(name, value) for name, value in query if value])


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds in Retry-After; None without it, or for a date, which API servers do not send."""
    value = headers.get("retry-after", "")
    return float(value) if value.isdecimal() else None
