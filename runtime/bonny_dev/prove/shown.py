"""Shown: whether the value of a Secret can be read in the log, in Events, or in the status of an object.

The values are from all Secrets in the namespace of a life. A value that stands in the sample itself, outside of a
Secret, is not secret.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from typing import Final

from bonny.resource import Resource

from ..sandbox.admin import Admin
from .variants import Sample

# Shorter values, such as a name of a user or `true`, stand elsewhere for other reasons.
SHORTEST: Final = 8
PUBLIC: Final = frozenset({"ca.crt", "tls.crt"})


class Shown:
    """The values and the statuses of one life."""

    def __init__(self, sample: Sample | None = None) -> None:
        documents = [*sample.surroundings, *sample.subjects] if sample else []
        self._open = json.dumps([each for each in documents if each["kind"] != "Secret"])
        self._values: dict[str, str] = {}
        self._statuses: dict[str, str] = {}

    def look(self, sandbox: Admin, namespace: str, objects: Iterable[Resource]) -> None:
        """Remember the Secrets that are there now, and the statuses of `objects`."""
        answer = sandbox.request("GET", f"/api/v1/namespaces/{namespace}/secrets")
        for secret in answer.body["items"] if answer.status == 200 else ():
            for key, text in (secret.get("data") or {}).items():
                value = base64.b64decode(text).decode(errors="replace").strip()
                if key not in PUBLIC and len(value) >= SHORTEST and value not in self._open:
                    self._values[value] = f"the value {key} of Secret {secret['metadata']['name']}"
        for each in objects:
            label = f"the status of {each['kind']} {each['metadata']['name']}"
            self._statuses[label] = self._statuses.get(label, "") + json.dumps(each.get("status"), ensure_ascii=False)

    def where(self, sandbox: Admin, namespace: str, log: str) -> list[str]:
        """A sentence for each value and place; the values themselves are not in it."""
        places = {**self._statuses, "an Event": _events(sandbox, namespace), "the log": log}
        return list(dict.fromkeys(self._found(places)))

    def _found(self, places: dict[str, str]) -> Iterator[str]:
        for value, name in self._values.items():
            forms = {value, json.dumps(value, ensure_ascii=False)[1:-1], base64.b64encode(value.encode()).decode()}
            for place, text in places.items():
                if any(form in text for form in forms):
                    yield f"{name} can be read in {place}"


def _events(sandbox: Admin, namespace: str) -> str:
    answer = sandbox.request("GET", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events")
    return json.dumps(answer.body, ensure_ascii=False)
