"""Administrator: requests to a sandbox's API server, as `kubectl` would send them, with the whole answer.

You need it to see what the API server says of a definition or an object, warnings included.
You do not need it to arrange objects for an operator: `Sandbox.apply` is simpler, `load` is faster.
"""

from __future__ import annotations

import http.client
import json
import ssl
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Self
from urllib.parse import urlsplit

from bonny.kinds import builtin
from bonny.resource import Resource
from bonny_dev.sandbox import Sandbox

__all__ = ["Administrator", "Answer", "collection"]

# A fresh CRD is served within a second; a loaded machine may take several.
SERVED_SECONDS: Final = 20.0
REQUEST_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What the API server said. `body` is a Status where it refused."""

    status: int
    body: Resource
    warnings: tuple[str, ...]

    @property
    def message(self) -> str:
        """Why it refused."""
        return str(self.body.get("message", ""))


class Administrator:
    """Somebody who may do everything, over one connection; used in a `with` block."""

    def __init__(self, sandbox: Sandbox) -> None:
        trust = ssl.create_default_context(cafile=str(sandbox.ca_file))
        host = urlsplit(sandbox.url).netloc
        self._connection = http.client.HTTPSConnection(host, context=trust, timeout=REQUEST_SECONDS)
        self._headers = {"Authorization": f"Bearer {sandbox.token}"}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._connection.close()

    def request(
        self,
        method: str,
        path: str,
        body: Resource | None = None,
        *,
        media: str = "json",
        accept: str = "*/*",
        user: str = "",
        group: str = "system:masters",
    ) -> Answer:
        """Send one request, as `user` in `group` if one is given. A path that is not served yet is answered in plain
        text, which is the message then."""
        content = None if body is None else json.dumps(body).encode()
        headers = {**self._headers, "Accept": accept, "Content-Type": f"application/{media}"}
        if user:
            headers |= {"Impersonate-User": user, "Impersonate-Group": group}
        self._connection.request(method, path, content, headers)
        answer = self._connection.getresponse()
        text = answer.read().decode()
        decoded = json.loads(text) if text.startswith("{") else {"message": text}
        return Answer(answer.status, decoded, tuple(answer.headers.get_all("Warning", [])))

    def apply(self, resource: Resource) -> Answer:
        """Server-side apply, as `kubectl apply --server-side --validate=strict` does it."""
        path = f"{collection(resource)}/{resource['metadata']['name']}?fieldManager=test&fieldValidation=Strict"
        return self.request("PATCH", path, resource, media="apply-patch+yaml")

    def served(self, path: str) -> None:
        """Wait until a collection can be listed."""
        ends = time.monotonic() + SERVED_SECONDS
        while self.request("GET", path).status != 200:
            assert time.monotonic() < ends, f"{path} is not served"
            time.sleep(0.05)

    @contextmanager
    def installed(self, definitions: Iterable[Resource]) -> Iterator[None]:
        """CustomResourceDefinitions that are served within the block, and removed after it."""
        known = list(definitions)
        try:
            for definition in known:
                answer = self.apply(definition)
                assert answer.status == 201, answer.message
                assert answer.warnings == ()
            for definition in known:
                spec = definition["spec"]
                for version in spec["versions"]:
                    if version["served"]:
                        self.served(f"/apis/{spec['group']}/{version['name']}/{spec['names']['plural']}")
            yield
        finally:
            paths = [f"{collection(definition)}/{definition['metadata']['name']}" for definition in known]
            for path in paths:
                self.request("DELETE", path)
            # The next test may install the same name, which would otherwise be an update of what is being deleted.
            ends = time.monotonic() + SERVED_SECONDS
            while time.monotonic() < ends and any(self.request("GET", path).status == 200 for path in paths):
                time.sleep(0.05)


def collection(resource: Resource) -> str:
    """The path of the collection that `resource` is in; the plural of a kind of ours is guessed by adding an s."""
    known = builtin(resource["apiVersion"], resource["kind"])
    plural = known[0] if known else f"{resource['kind'].lower()}s"
    root = "/apis/" if "/" in resource["apiVersion"] else "/api/"
    namespace = resource["metadata"].get("namespace")
    return f"{root}{resource['apiVersion']}/{f'namespaces/{namespace}/' if namespace else ''}{plural}"
