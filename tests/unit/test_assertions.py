"""Assertions of `bonny_dev.testing`: what they accept, and how their messages read."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from bonny import Axn, Resource
from bonny_dev import testing


def widget() -> Resource:
    metadata = {"name": "w1", "namespace": "default", "uid": "u-1", "generation": 4}
    return {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": metadata, "spec": {}}


def child(kind: str, name: str, *, namespace: str = "", **fields: Any) -> Resource:
    metadata = {"name": name, "namespace": namespace} if namespace else {"name": name}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **fields}


@pytest.fixture
def token() -> Axn[Any]:
    """One on which a handler registered something of everything."""
    made = testing.axn(widget())
    ports = [{"port": 80, "name": "http"}, {"port": 443, "name": "https"}]
    made.register_descendant(child("Service", "web", spec={"type": "ClusterIP", "ports": ports}))
    made.register_descendant(child("ConfigMap", "page", namespace="elsewhere", data={"a": "1"}))
    made.update_status(lambda status: {**status, "size": 3})
    made.set_condition("Ready", False, reason="Starting", message="1 of 3 are up")
    made.set_condition("Known", None)
    made.success_event(reason="Applied", message="3 replicas requested")
    made.failure_event(reason="NoBackup", message="there is none")
    made.requeue_after(30.0)
    return made


@pytest.fixture
def untouched() -> Axn[Any]:
    """One on which nothing was registered."""
    return testing.axn(widget())


# --- what holds -------------------------------------------------------------------------------------------------------


def test_what_is_not_named_may_be_anything(token: Axn[Any]) -> None:
    testing.assert_descendant(token, "Service", "web")
    testing.assert_descendant(token, "Service", "web", spec={"ports": [{"port": 80}, {"name": "https"}]})
    testing.assert_status(token)
    testing.assert_condition(token, "Ready", False)
    testing.assert_event(token, "NoBackup")
    testing.assert_requeued(token)


def test_each_returns_what_it_found(token: Axn[Any]) -> None:
    assert testing.assert_descendant(token, "ConfigMap", "page")["data"] == {"a": "1"}
    assert testing.assert_status(token, size=3)["size"] == 3
    assert testing.assert_condition(token, "Known", None)["reason"] == "Unknown"
    assert testing.assert_event(token, "Applied", type="Normal", action="Reconcile").message == "3 replicas requested"
    assert testing.assert_requeued(token, after=30) == 30.0


def test_a_descendant_without_a_namespace_is_in_that_of_its_owner(token: Axn[Any]) -> None:
    """Regression: it was not found under the namespace in which it is created."""
    testing.assert_descendant(token, "Service", "web", namespace="default")
    testing.assert_descendant(token, "ConfigMap", "page", namespace="elsewhere")


def test_of_several_events_with_one_reason_the_one_that_fits_is_found(untouched: Axn[Any]) -> None:
    for number in (1, 2):
        untouched.register_event(None, "Normal", "Counted", "Count", f"number {number}")
    assert testing.assert_event(untouched, "Counted", message="number 2") is untouched.events[1]


def test_nothing_is_there_where_nothing_was_registered(untouched: Axn[Any]) -> None:
    testing.assert_no_descendant(untouched)
    testing.assert_no_event(untouched)


def test_no_descendant_may_be_said_of_a_kind_or_a_name(token: Axn[Any]) -> None:
    testing.assert_no_descendant(token, "Secret")
    testing.assert_no_descendant(token, "Service", "page")
    testing.assert_no_descendant(token, name="other")


# --- messages ---------------------------------------------------------------------------------------------------------

Assertion = Callable[[Axn[Any]], object]
EVENTS = "Normal Applied (3 replicas requested), Warning NoBackup (there is none)"

MESSAGES: list[tuple[Assertion, str]] = [
    (
        lambda token: testing.assert_descendant(token, "Deployment", "web"),
        "no Deployment web was registered; registered: Service web, ConfigMap elsewhere/page",
    ),
    (
        lambda token: testing.assert_descendant(token, "Service", "web", namespace="elsewhere"),
        "no Service elsewhere/web was registered; registered: Service web, ConfigMap elsewhere/page",
    ),
    (
        lambda token: testing.assert_descendant(token, "Service", "web", spec={"type": "NodePort"}),
        "Service web.spec.type is 'ClusterIP', not 'NodePort'",
    ),
    (
        lambda token: testing.assert_descendant(token, "Service", "web", spec={"selector": {}}),
        "Service web.spec has no selector; it has type, ports",
    ),
    (
        lambda token: testing.assert_descendant(token, "Service", "web", spec={"ports": [{"port": 80}, {"port": 81}]}),
        "Service web.spec.ports[1].port is 443, not 81",
    ),
    (
        lambda token: testing.assert_descendant(token, "ConfigMap", "page", data=["a"]),
        "ConfigMap elsewhere/page.data is {'a': '1'}, not ['a']",
    ),
    (
        lambda token: testing.assert_no_descendant(token, "ConfigMap"),
        "no ConfigMap was to be registered; registered: ConfigMap elsewhere/page",
    ),
    (
        lambda token: testing.assert_no_descendant(token, "Service", "web"),
        "no Service web was to be registered; registered: Service web",
    ),
    (
        testing.assert_no_descendant,
        "no descendant was to be registered; registered: Service web, ConfigMap elsewhere/page",
    ),
    (lambda token: testing.assert_status(token, size=4), "status.size is 3, not 4"),
    (lambda token: testing.assert_status(token, phase="Up"), "status has no phase; it has size, conditions"),
    (
        lambda token: testing.assert_condition(token, "Available"),
        "no condition Available was set; set: Ready, Known",
    ),
    (
        lambda token: testing.assert_condition(token, "Ready"),
        "condition Ready is False (Starting: 1 of 3 are up), not True",
    ),
    (lambda token: testing.assert_condition(token, "Known", False), "condition Known is Unknown (Unknown), not False"),
    (
        lambda token: testing.assert_condition(token, "Ready", False, reason="NotReady"),
        "the reason of condition Ready is 'Starting', not 'NotReady'",
    ),
    (
        lambda token: testing.assert_condition(token, "Ready", False, message=""),
        "the message of condition Ready is '1 of 3 are up', not ''",
    ),
    (
        lambda token: testing.assert_event(token, "Applied", type="Warning"),
        f"no event with reason 'Applied', type 'Warning' was registered; registered: {EVENTS}",
    ),
    (
        testing.assert_no_event,
        f"no event was to be registered; registered: {EVENTS}",
    ),
    (
        lambda token: testing.assert_requeued(token, after=5),
        "the handler is to run again after 30 s, not after 5 s",
    ),
    (
        lambda token: testing.assert_requeued(token, at=datetime(2026, 3, 1, tzinfo=UTC)),
        "the handler is to run again after 30 s, not at 2026-03-01 00:00:00+00:00",
    ),
]


@pytest.mark.parametrize(("assertion", "message"), MESSAGES, ids=[message[:40] for _, message in MESSAGES])
def test_a_message_says_what_was_there_instead(assertion: Assertion, message: str, token: Axn[Any]) -> None:
    with pytest.raises(AssertionError) as failed:
        assertion(token)
    assert str(failed.value) == message


@pytest.mark.parametrize(
    ("assertion", "message"),
    [
        (
            lambda token: testing.assert_descendant(token, "Service", "web"),
            "no Service web was registered; registered: none",
        ),
        (lambda token: testing.assert_status(token, size=1), "status has no size; it has nothing"),
        (lambda token: testing.assert_condition(token, "Ready"), "no condition Ready was set; set: none"),
        (
            lambda token: testing.assert_event(token, "Applied"),
            "no event with reason 'Applied' was registered; registered: none",
        ),
        (testing.assert_requeued, "the handler did not set a time to run again"),
    ],
)
def test_it_says_so_when_nothing_was_registered(assertion: Assertion, message: str, untouched: Axn[Any]) -> None:
    with pytest.raises(AssertionError) as failed:
        assertion(untouched)
    assert str(failed.value) == message


def test_a_list_is_as_long_as_the_one_that_is_named(token: Axn[Any]) -> None:
    with pytest.raises(AssertionError, match=r"^Service web\.spec\.ports has 2 items, not 1: \[\{'port': 80, "):
        testing.assert_descendant(token, "Service", "web", spec={"ports": [{"port": 80}]})
