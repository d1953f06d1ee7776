"""Shown: where values of Secrets can be read; neither public nor short values are looked for."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from bonny_dev.prove.shown import Shown
from bonny_dev.prove.variants import Sample
from bonny_dev.sandbox.admin import AdminAnswer

VALUE = 'a "long" token'
LAMP = {"kind": "Lamp", "metadata": {"name": "desk"}, "spec": {"user": "somebody-known"}}
SAMPLE = Sample("desk", [], [LAMP], (), ())


class Server:
    """The Secrets and Events of a namespace."""

    def __init__(self, data: dict[str, str], note: str = "") -> None:
        self._data = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
        self._note = note

    def request(self, method: str, path: str) -> AdminAnswer:
        assert method == "GET"
        if path == "/api/v1/namespaces/n1/secrets":
            return AdminAnswer(200, {"items": [{"metadata": {"name": "door"}, "data": self._data}, {"metadata": {}}]})
        assert path == "/apis/events.k8s.io/v1/namespaces/n1/events"
        return AdminAnswer(200, {"items": [{"note": self._note}]})


def found(data: dict[str, str], *, note: str = "", status: Any = None, log: str = "") -> list[str]:
    server: Any = Server(data, note)
    shown = Shown(SAMPLE)
    shown.look(server, "n1", [{"kind": "Lamp", "metadata": {"name": "desk"}, "status": status}])
    shown.look(server, "n1", [])
    return shown.where(server, "n1", log)


@pytest.mark.parametrize(
    ("where", "place"),
    [
        ({"note": f"called with {VALUE}"}, "an Event"),
        ({"status": {"last": [VALUE]}}, "the status of Lamp desk"),
        ({"log": f"called with {VALUE}\n"}, "the log"),
        ({"log": base64.b64encode(VALUE.encode()).decode()}, "the log"),
    ],
)
def test_a_value_of_a_secret_is_found_in_each_place_and_not_repeated(where: dict[str, Any], place: str) -> None:
    assert found({"token": VALUE}, **where) == [f"the value token of Secret door can be read in {place}"]


def test_values_that_are_public_or_short_are_not_looked_for() -> None:
    data = {"user": "somebody-known", "tls.crt": "-----BEGIN", "port": "5432"}

    assert found(data, status=data, note=str(data), log=str(data)) == []
