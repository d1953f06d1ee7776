"""Points: the requests of a life at which something can happen, with names that are the same in each life."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from ..testing.faults import Predicate, ProxiedRequest, is_write

API: Final = "API server"
SERVICE: Final = "external service"
VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "write", "DELETE": "delete", "GET": "read"}
PATH: Final = re.compile(
    r"/(?:api/[^/]+|apis/(?P<group>[^/]+)/[^/]+)(?:/namespaces/(?P<namespace>[^/]+))?"
    r"/(?P<resource>[^/]+)(?:/(?P<name>[^/]+))?(?:/(?P<subresource>.+))?"
)
# Written about what happens, not as a part of it.
ASIDE: Final = frozenset({"events", "leases"})


class Chapter(StrEnum):
    """A step in the life of the subjects of a sample, in this order."""

    START = "start"
    CREATED = "created"
    CHANGED = "changed"
    BACK = "changed-back"
    REDUCED = "reduced"
    DELETED = "deleted"
    AGAIN = "created-again"


@dataclass(frozen=True, slots=True)
class Point:
    """One request of a life, the `nth` of its sort in its chapter."""

    chapter: Chapter
    server: str
    verb: str
    what: str
    """`configmaps lamp`, `widgets lamp status`, or the path of a call to the external service."""

    nth: int = 1

    @property
    def is_write(self) -> bool:
        """Whether the request changes something: all but read, list and watch."""
        return self.verb not in ("read", "list", "watch")

    def __str__(self) -> str:
        """As in the name of a plan."""
        words = re.sub(r"[^\w.-]+", "-", f"{self.verb}-{self.what}").strip("-")
        return f"{self.chapter}/{words}" + (f"-{self.nth}" if self.nth > 1 else "")

    def told(self) -> str:
        """As in a sentence: the second `write of configmaps lamp` in the chapter `created`."""
        order = {1: "", 2: "second ", 3: "third "}.get(self.nth, f"{self.nth}th ")
        where = f" to the {self.server}" if self.server == SERVICE else ""
        return f"the {order}{self.verb} of {self.what}{where} (chapter {self.chapter})"


Sort = tuple[Chapter, str, str, str]
Writer = tuple[Chapter, str, str]
"""A chapter, an object such as `configmaps lamp`, and the field manager that writes it."""


def object_in(what: str) -> str:
    """The object of a request, without its subresource: `lamps desk` of `lamps desk status`."""
    return " ".join(what.split(" ")[:2])


def is_step(request: ProxiedRequest) -> bool:
    """Whether a write to the API server counts: Events and Leases do not."""
    match = PATH.fullmatch(request.path)
    return is_write(request) and not (match and match["resource"] in ASIDE)


def sort_of(request: ProxiedRequest, chapter: Chapter, server: str, named: Callable[[str], str] = str) -> Sort:
    """A request without its number; `named` gives the name of an object as it is in each life; default: as it is."""
    verb = VERBS.get(request.method, request.method)
    if server == SERVICE:
        return chapter, server, request.method, named(request.path)
    match = PATH.fullmatch(request.path)
    if not match:
        return chapter, server, verb, request.path
    resource, name = match["resource"], match["name"] or ""
    if request.method == "GET" and not name:
        return chapter, server, "watch" if request.is_watch else "list", resource
    if request.method == "POST" and not name:
        name = _name_in(request.body)
    words = [resource, named(name) if name else "", match["subresource"] or ""]
    return chapter, server, verb, " ".join(word for word in words if word)


def _name_in(body: bytes) -> str:
    """The name of an object that is created; one that the API server generates is new each time."""
    try:
        metadata = json.loads(body)["metadata"]
        return str(metadata.get("name") or f"{metadata['generateName']}...")
    except (ValueError, KeyError, TypeError):
        return ""


def points_of(sorts: Iterable[Sort]) -> list[Point]:
    """The points of a life, in the order of its requests."""
    counts: Counter[Sort] = Counter()
    points = []
    for each in sorts:
        counts[each] += 1
        points.append(Point(*each, counts[each]))
    return points


def at(point: Point, sort: Callable[[ProxiedRequest], Sort]) -> Predicate:
    """Whether a request of a life is the one at `point`. Use it in one life only: it counts."""
    count = 0

    def is_it(request: ProxiedRequest) -> bool:
        nonlocal count
        if sort(request) != (point.chapter, point.server, point.verb, point.what):
            return False
        count += 1
        return count == point.nth

    return is_it
