"""Ticks: reconciles one object again and again without a server, and checks that its controller comes to rest.

    ticks = testing.Ticks(WidgetController, widget(size=3))
    await ticks.until_steady(max=20)

Each tick is one reconcile: its status and children are there for the next one. Time is virtual: a tick takes a second,
and a wait of the handler passes at once. You do not need it to check one reconcile: use `handle`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from bonny.controller import Controller
from bonny.core.fields import same
from bonny.core.records import Action
from bonny.resource import Resource, gvk_of, has_all_of, identify, key_of, listed

from .answers import Answers, AnyAnswers
from .shown import child_of
from .token import Handled, awaited, handle

UID: Final = "00000000-0000-4000-8000-000000000000"
READS: Final = ("get", "list")
SHOWN: Final = 60
ONE_SECOND: Final = timedelta(seconds=1)


class Write(NamedTuple):
    """A change of one tick."""

    what: str
    """A field, `ConfigMap desk data.size`; a request, `patch nodes n1`; or `a new ConfigMap`."""

    value: Any = None
    """The new value, or the name of the object."""


class Ticks:
    """See the module."""

    def __init__(
        self,
        controller: type[Controller[Any]],
        resource: Resource,
        *,
        observed: Iterable[Mapping[str, Any]] = (),
        others: Callable[[Resource], Resource] = lambda child: child,
        now: datetime | None = None,
        answers: AnyAnswers | None = None,
    ) -> None:
        """`observed` are other objects that exist before the first tick; `others` returns a child as other writers
        change it, such as `testing.ready`; by default they do not. `now` (default: the time) and `answers` are as for
        `handle`."""
        metadata = {"uid": UID, "generation": 1, **resource["metadata"]}
        self.resource: Resource = {**resource, "metadata": metadata}
        """The object, with the status that the last tick left."""

        self.now = now or datetime.now(UTC)
        self.token: Handled[Any] | None = None
        """The token of the last tick, for assertions."""

        self._controller, self._others = controller, others
        self._answers = answers if isinstance(answers, Answers) else Answers(answers or {})
        self._observed = [dict(each) for each in observed]
        self._wanted: dict[str, Resource] = {}
        self._live: dict[str, Resource] = {}

    @property
    def children(self) -> list[Resource]:
        """The children, as the last tick left them."""
        return list(self._live.values())

    async def tick(self) -> list[Write]:
        """One reconcile. Returns: its changes; nothing at rest. Raises: as `handle`."""
        token, requests = await self._handled(Action.ADD if self.token is None else Action.RECONCILE)
        return [*requests, *self._applied(token), *self._pruned(token), *self._status(token)]

    async def finalize(self) -> list[Write]:
        """One run of `finalize`, for the object as it is being deleted. Returns: its requests and its changes of the
        status. Raises: as `handle`."""
        metadata = {**self.resource["metadata"], "deletionTimestamp": self.now.strftime("%Y-%m-%dT%H:%M:%SZ")}
        self.resource = {**self.resource, "metadata": metadata}
        token, requests = await self._handled(Action.FINALIZE)
        return [*requests, *self._status(token)]

    async def _handled(self, action: Action) -> tuple[Handled[Any], list[Write]]:
        """The token of a handler that ran, and the requests that it sent."""
        sent = len(self._answers.requests)
        observed = [*self._observed, *self._live.values()]
        self.token = token = await handle(
            self._controller, self.resource, action=action, observed=observed, now=self.now, answers=self._answers
        )
        return token, [Write(str(each), each.body) for each in self._answers.requests[sent:] if each.verb not in READS]

    def _status(self, token: Handled[Any]) -> Iterator[Write]:
        """Keep the status that a handler registered."""
        if token.changes_status:
            before = self.resource.get("status") or {}
            status = token.status_from(before)
            self.resource = {**self.resource, "status": status}
            yield from (Write(*each) for each in _changes(before, status, "status"))

    async def until_steady(self, *, max: int = 20) -> int:  # noqa: A002  the word of a test
        """Tick until nothing is written, now and after the wait of the handler.

        Returns: how many ticks it took. Raises: `AssertionError` after `max` ticks (default 20); it names what was
        written again and again. As `handle`.
        """
        counts, last, waited = Counter[str](), dict[str, Any](), False
        for number in range(1, max + 1):
            written = dict(await self.tick())
            counts.update([*written])  # of a mapping it would add the values
            last = written or last
            pause = self.token.requeue_seconds if self.token else None
            if not written and (waited or pause is None):
                return number
            waited = not written
            self.now += timedelta(seconds=pause) if waited and pause else ONE_SECOND
        again = [f"{what} ({counts[what]} times, now {_cut(value)})" for what, value in last.items()]
        raise AssertionError(
            f"{self._controller.__name__} does not come to rest: within {max} ticks it wrote {listed(again)}"
        )

    def _applied(self, token: Handled[Any]) -> Iterator[Write]:
        """Apply the registered children that do not wait for others."""
        held, _ = awaited(token)
        for each in (each for group in token.descendant_groups() for each in group if each.name not in held):
            child, name = child_of(self.resource, each.resource), str(each.name)
            before, live = self._wanted.get(name), self._live.get(name)
            if live is None:
                yield Write(f"a new {child['kind']}", child["metadata"].get("name"))
            elif before is None or not has_all_of(live, child) or not same(before, child):
                kept = {field: live[field] for field in before or () if field in live}
                changes = [*_changes(before or {}, child, identify(child)), *_changes(kept, child, identify(child))]
                yield from (Write(*change) for change in dict(changes).items())
            status = {"status": live["status"]} if live and "status" in live else {}
            self._wanted[name], self._live[name] = child, dict(self._others({**child, **status}))

    def _pruned(self, token: Handled[Any]) -> Iterator[Write]:
        """Delete the children that were registered once, as the step `PruneDescendants` does."""
        children = token.context.router.children_of(token.uid)
        if token.waiting is not None or not token.controller.prunes():
            return
        dropped = {(kind.gvk, child.key.name) for kind, child in token.unwanted(children)}
        for name, child in list(self._live.items()):
            if (gvk_of(child), key_of(child).name) in dropped:
                del self._live[name], self._wanted[name]
                yield Write(f"the end of a {child['kind']}", child["metadata"]["name"])


def _changes(before: Any, after: Any, path: str) -> Iterator[tuple[str, Any]]:
    """The path and the new value of each field that differs; None for one that is removed."""
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in dict.fromkeys((*before, *after)):
            yield from _changes(before.get(name), after.get(name), f"{path}.{name}")
    elif not same(before, after):
        yield path, after


def _cut(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
