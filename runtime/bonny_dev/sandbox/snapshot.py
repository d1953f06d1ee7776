"""Snapshot: the content of etcd at one moment, and the way back to it, which is quicker than another start.

You need it for tests that leave things behind which only a controller would take away, such as namespaces.
"""

from __future__ import annotations

import base64
import json
import urllib.request
from typing import Any, Final

TIMEOUT_SECONDS: Final = 30.0
# etcd takes 128 operations in a transaction.
OPERATIONS: Final = 100
# Keys that the API server itself renews as long as it runs.
RENEWED: Final = ("/registry/leases/kube-system/apiserver-", "/registry/peerserverleases/", "/registry/masterleases/")
DEFINITIONS: Final = "/registry/apiextensions.k8s.io/customresourcedefinitions/"


class Snapshot:
    """The keys below /registry and their values, when this was made.

    Raises: `OSError` when etcd does not answer, as `restore` does.
    """

    def __init__(self, etcd: str) -> None:
        """`etcd` is the address of its clients' port, such as http://127.0.0.1:2379, without TLS."""
        self._etcd = etcd
        self._then = self._all()

    def restore(self) -> list[dict[str, Any]]:
        """Remove keys that were added since, and write back changed and removed ones; returns the CRDs that it removed.

        The API server sees it as changes of another one, and sends an event to every watch.
        """
        now = self._all(keys_only=True)
        # Objects before the definitions of their kinds: otherwise their watches would get no event.
        new = sorted((key for key in now if key not in self._then), key=lambda key: key.startswith(DEFINITIONS))
        values = [self._value(key) for key in new if key.startswith(DEFINITIONS)]
        removed = [json.loads(value) for value in values if value is not None]
        other = (key for key, was in self._then.items() if now.get(key, {}).get("mod_revision") != was["mod_revision"])
        back = [key for key in other if not key.startswith(RENEWED)]
        operations = [{"requestDeleteRange": {"key": _encoded(key)}} for key in new if not key.startswith(RENEWED)]
        operations += [{"requestPut": {"key": _encoded(key), "value": self._then[key]["value"]}} for key in back]
        for at in range(0, len(operations), OPERATIONS):
            self._call("txn", {"success": operations[at : at + OPERATIONS]})
        if back:  # these keys have another revision now
            revisions = self._all(keys_only=True)
            self._then |= {key: self._then[key] | {"mod_revision": revisions[key]["mod_revision"]} for key in back}
        return removed

    def _all(self, *, keys_only: bool = False) -> dict[str, dict[str, Any]]:
        answer = self._call(
            "range", {"key": _encoded("/registry/"), "range_end": _encoded("/registry0"), "keys_only": keys_only}
        )
        return {base64.b64decode(each["key"]).decode(): each for each in answer.get("kvs", ())}

    def _value(self, key: str) -> bytes | None:
        """None when the API server removed the key meanwhile, as at the end of a deletion."""
        found = self._call("range", {"key": _encoded(key)}).get("kvs")
        return base64.b64decode(found[0]["value"]) if found else None

    def _call(self, what: str, body: dict[str, Any]) -> dict[str, Any]:
        url = f"{self._etcd}/v3/kv/{what}"
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(url, json.dumps(body).encode(), timeout=TIMEOUT_SECONDS) as response:
            answer: dict[str, Any] = json.load(response)
            return answer


def _encoded(key: str) -> str:
    return base64.b64encode(key.encode()).decode()
