"""Errors of the client: what they say, and what they must not say."""

from __future__ import annotations

import pytest
from aiohttp import ClientHttpProxyError, RequestInfo
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from bonny.client.api import retry_after
from bonny.client.config import Connection
from bonny.client.errors import (
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    NotServed,
    ServerError,
    Throttled,
    Unauthorized,
    refusal,
)
from bonny.client.transport import _sentence
from bonny.core.objects import Failure


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (400, Invalid),
        (401, Unauthorized),
        (403, Forbidden),
        (404, NotFound),
        (404, NotServed),
        (409, Conflict),
        (422, Invalid),
        (429, Throttled),
        (500, ServerError),
        (302, ServerError),
    ],
)
def test_a_status_has_the_class_that_says_what_to_do_next(code: int, kind: type[Exception]) -> None:
    reason = "NotFound" if kind is NotFound else ""
    error = refusal(Failure(code, reason, "what the server said"), verb="apply", resource="configmaps default/w1")
    assert type(error) is kind
    assert str(error) == f"cannot apply configmaps default/w1 ({code}): what the server said"


def test_the_causes_of_a_refusal_survive_the_cleaning_of_its_message() -> None:
    failure = Failure(403, "Forbidden", "no", 2.0, ("NamespaceTerminating",))

    error = refusal(failure, verb="create", resource="events.events.k8s.io w1.1")

    assert (error.causes, error.retry_after, error.reason) == (("NamespaceTerminating",), 2.0, "Forbidden")


@pytest.mark.parametrize(
    ("message", "told"),
    [
        (
            'Deployment.apps "x" is invalid: spec.replicas: Invalid value: -7: must be at least 0',
            'Deployment.apps "x" is invalid: spec.replicas: Invalid value: (left out): must be at least 0',
        ),
        ('env: Duplicate value: "hunter2: \\"x\\""', "env: Duplicate value: (left out)"),
        (
            ".stringData.pin: expected string, got &value.valueUnstructured{Value:73512842}",
            ".stringData.pin: expected string, got (left out)",
        ),
        ("namespaces not found", "namespaces not found"),
    ],
)
def test_the_values_that_the_server_quotes_are_left_out(message: str, told: str) -> None:
    """Regression: the value of a Secret stood in its owner's status and in the log."""
    assert refusal(Failure(422, "", message), verb="apply", resource="deployments.apps d/x").message == told


def test_of_a_secret_nothing_is_repeated() -> None:
    error = refusal(Failure(500, "", "data[pin]: hunter2 is no base64"), verb="apply", resource="secrets default/w1")
    assert "hunter2" not in str(error)
    assert "secrets default/w1 (500)" in str(error)


def test_the_password_of_a_proxy_is_not_told() -> None:
    """Regression: the text of the library's error has the proxy's URL."""
    url = URL("http://bob:hunter2@127.0.0.1:3128")
    request = RequestInfo(url, "CONNECT", CIMultiDictProxy(CIMultiDict()), url)
    error = ClientHttpProxyError(request, (), status=407, message="Proxy Authentication Required")
    assert "hunter2" in str(error)

    said = _sentence(Connection(server="https://api.example.com"), error, 30.0)

    assert said == "https://api.example.com cannot be reached: 407 Proxy Authentication Required"


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("1", 1.0),
        ("0", 0.0),
        ("120", 120.0),
        ("", None),
        ("1.5", None),
        ("-1", None),
        ("²", None),
        ("nan", None),
        ("1, 0", None),
        ("Wed, 21 Oct 2015 07:28:00 GMT", None),
    ],
)
def test_of_the_advice_when_to_come_back_seconds_are_read_and_nothing_else(value: str, seconds: float | None) -> None:
    assert retry_after({"retry-after": value}) == seconds
    assert retry_after({}) is None
