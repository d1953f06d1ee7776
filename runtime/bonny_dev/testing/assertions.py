"""Assertions: the registered state of a handler, in sentences.

    assert_descendant(token, "Deployment", "w1", spec={"replicas": 3})
    assert_condition(token, "Ready", False, reason="Waiting")
    assert_event(token, "Applied", type="Normal")

Named fields must have the given values; other fields may have any. Lists must have the same length. Each function
returns what it found, for more checks. Raises: `AssertionError`, which shows the registered state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, cast

from bonny.axn import Axn
from bonny.engine.reconcile import Reconcile
from bonny.events import Event
from bonny.resource import Resource, identify, key_of


def assert_descendant(
    token: Axn[Any], kind: str, name: str, *, namespace: str | None = None, **fields: Any
) -> Resource:
    """A descendant of that kind and name was registered, and holds `fields`.

    A descendant that was registered without a namespace is in the namespace of the handled object.
    """
    wanted = f"{kind} {name}" if namespace is None else f"{kind} {namespace}/{name}"
    matches = [descendant for descendant in _whole(token).descendants if _is(descendant, token, kind, name, namespace)]
    _require(matches, f"no {wanted} was registered; registered: {_listed(map(identify, _whole(token).descendants))}")
    _assert_holds(matches[0], fields, identify(matches[0]))
    return matches[0]


def assert_no_descendant(token: Axn[Any], kind: str | None = None, name: str | None = None) -> None:
    """No descendant was registered; or none of that kind, or of that kind and name."""
    unwanted = [
        identify(descendant)
        for descendant in _whole(token).descendants
        if kind in (None, descendant["kind"]) and name in (None, descendant["metadata"]["name"])
    ]
    wanted = " ".join(filter(None, (kind or "descendant", name)))
    _require(not unwanted, f"no {wanted} was to be registered; registered: {_listed(unwanted)}")


def assert_pruned(token: Axn[Any], kind: str, *names: str) -> None:
    """Of the children of that kind in `observed`, exactly those called `names` will be deleted: the handler neither
    registered nor kept them. Without names: none."""
    ours = _whole(token)
    children = [child for child in ours.context.router.children_of(token.uid) if child[0].kind == kind]
    found = [child.key.name for _, child in ours.unwanted(children) if ours.controller.prunes()]
    _require(sorted(found) == sorted(names), f"{kind} to be pruned: {_listed(sorted(found))}, not {_listed(names)}")


def assert_status(token: Axn[Any], **fields: Any) -> Resource:
    """The registered status holds `fields`."""
    status = _whole(token).status
    _assert_holds(status, fields, "status")
    return status


def assert_condition(
    token: Axn[Any],
    type: str,  # noqa: A002  the API's own word
    status: bool | None = True,
    *,
    reason: str | None = None,
    message: str | None = None,
) -> Resource:
    """The condition `type` was set to True, False or (None) Unknown, with that reason and message if they are named."""
    conditions = _whole(token).conditions
    _require(type in conditions, f"no condition {type} was set; set: {_listed(conditions)}")
    condition = conditions[type]
    wanted = {True: "True", False: "False", None: "Unknown"}[status]
    because = f"{condition['reason']}: {condition['message']}".removesuffix(": ")
    _require(condition["status"] == wanted, f"condition {type} is {condition['status']} ({because}), not {wanted}")
    for name, value in (("reason", reason), ("message", message)):
        same = value in (None, condition[name])
        _require(same, f"the {name} of condition {type} is {condition[name]!r}, not {value!r}")
    return condition


def assert_event(
    token: Axn[Any],
    reason: str,
    *,
    type: str | None = None,  # noqa: A002  the API's own word
    message: str | None = None,
    action: str | None = None,
) -> Event:
    """An event with that reason was registered, of that type and with that message if they are named."""
    given = {"reason": reason, "type": type, "message": message, "action": action}
    wanted = {name: value for name, value in given.items() if value is not None}
    for event in _whole(token).events:
        if all(getattr(event, name) == value for name, value in wanted.items()):
            return event
    asked = ", ".join(f"{name} {value!r}" for name, value in wanted.items())
    raise AssertionError(
        f"no event with {asked} was registered; registered: {_listed(map(_described, _whole(token).events))}"
    )


def assert_no_event(token: Axn[Any]) -> None:
    """No event was registered."""
    _require(
        not _whole(token).events,
        f"no event was to be registered; registered: {_listed(map(_described, _whole(token).events))}",
    )


def assert_requeued(token: Axn[Any], *, after: float | None = None, at: datetime | None = None) -> float:
    """The handler is to run again, after so many seconds or at that time if they are named.

    Returns the seconds; for `requeue_at` they count from `axn.now`.
    """
    seconds, time = _whole(token).requeue_seconds, _whole(token).requeue_time
    if seconds is None:
        raise AssertionError("the handler did not set a time to run again")
    asked = f"at {time}" if time else f"after {seconds:g} s"
    _require(after in (None, seconds), f"the handler is to run again after {seconds:g} s, not after {after} s")
    _require(at in (None, time), f"the handler is to run again {asked}, not at {at}")
    return seconds


def _whole(token: Axn[Any]) -> Reconcile[Any]:
    """The token with the registered state."""
    return cast("Reconcile[Any]", token)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none"


def _described(event: Event) -> str:
    return f"{event.type} {event.reason} ({event.message})"


def _require(holds: object, otherwise: str) -> None:
    """As `assert`, also under `python -O`."""
    if not holds:
        raise AssertionError(otherwise)


def _is(resource: Resource, token: Axn[Any], kind: str, name: str, namespace: str | None) -> bool:
    key = key_of(resource)
    return (resource["kind"], key.name) == (kind, name) and namespace in (None, key.namespace or token.key.namespace)


def _assert_holds(live: Any, wanted: Any, where: str) -> None:
    """Everything of `wanted` is in `live`; the message names the first path where it is not."""
    if isinstance(wanted, Mapping) and isinstance(live, Mapping):
        for name, value in wanted.items():
            _require(name in live, f"{where} has no {name}; it has {', '.join(map(str, live)) or 'nothing'}")
            _assert_holds(live[name], value, f"{where}.{name}")
    elif isinstance(wanted, list) and isinstance(live, list):
        _require(len(live) == len(wanted), f"{where} has {len(live)} items, not {len(wanted)}: {live}")
        for number, (item, value) in enumerate(zip(live, wanted, strict=True)):
            _assert_holds(item, value, f"{where}[{number}]")
    else:
        _require(live == wanted, f"{where} is {live!r}, not {wanted!r}")
