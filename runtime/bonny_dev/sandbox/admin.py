"""Admin: requests of a test or a demo to the API server, as its administrator.

You need it to prepare and check objects around an operator under test. These calls block, have all rights and are not
retried, but for the 429 of a definition that was changed; an operator itself uses `bonny.client`, which is asynchronous
and survives faults.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from bonny.resource import Resource, identify

from .connections import Connections
from .processes import SandboxError

T = TypeVar("T")

JSON: Final = "application/json"
APPLY: Final = "application/apply-patch+yaml"
REQUEST_SECONDS: Final = 30.0
# Between an applied CustomResourceDefinition and its kind in discovery lie some tens of milliseconds, more under load;
# after a change of it, the server answers 429 "storage is (re)initializing" for as long.
DISCOVERY_SECONDS: Final = 10.0
POLL_SECONDS: Final = 0.05
# Each look costs both sides a millisecond of CPU: the longer something takes, the rarer the looks.
LONGEST_POLL_SECONDS: Final = 0.2
FIELD_MANAGER: Final = "sandbox"


class AdminAnswer(NamedTuple):
    """An answer of the API server: the HTTP status, and the body as decoded JSON or as text."""

    status: int
    body: Any


class Admin:
    """Blocking requests to one API server with one token."""

    def __init__(self, *, url: str, token: str, ca_file: Path) -> None:
        self.url = url
        self.token = token
        self.ca_file = ca_file
        self._connections = Connections()
        self._kinds: dict[tuple[str, str], Resource] = {}
        """Kinds in discovery, by version and kind."""

    def request(
        self,
        method: str,
        path: str,
        body: Resource | None = None,
        *,
        content_type: str = JSON,
        token: str | None = None,
        timeout: float = REQUEST_SECONDS,
    ) -> AdminAnswer:
        """Send one request; a refusal is an answer, too: `request("GET", "/readyz").status == 200`.

        `token` replaces the administrator's, to act as another user. `timeout` (default 30 s) limits the wait
        for each piece of the answer.
        Raises: `OSError` when there is no complete answer.
        """
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {token or self.token}", "Accept": JSON, "Content-Type": content_type}
        try:
            with self._connections.to(urlsplit(self.url).netloc, ca_file=self.ca_file, timeout=timeout) as connection:
                connection.request(method, path, data, headers)
                response = connection.getresponse()
                text = response.read().decode(errors="replace")
        except HTTPException as error:
            raise ConnectionError(f"{method} {path}: the answer of {self.url} broke off") from error
        try:
            return AdminAnswer(response.status, json.loads(text))
        except ValueError:
            return AdminAnswer(response.status, text)

    def apply(self, objects: Resource | Iterable[Resource]) -> list[Resource]:
        """Server-side apply, in the given order; returns the live objects. A resource may directly follow its CRD.

        Raises: `SandboxError` with the API server's message when one is refused; those before it stay applied.
        """
        given = [objects] if isinstance(objects, dict) else list(objects)
        return [self._apply_one(resource) for resource in given]

    def get(self, api_version: str, kind: str, name: str, *, namespace: str = "default") -> Resource | None:
        """The object, or None when there is none. `namespace` is ignored for cluster-scoped kinds."""
        return self._of_kind("GET", api_version, kind, namespace=namespace, name=name, what="reading") or None

    def items(
        self, api_version: str, kind: str, *, namespace: str | None = None, label_selector: str = ""
    ) -> list[Resource]:
        """All objects of a kind: of one namespace, or (default) of all."""
        query = "?" + urlencode({"labelSelector": label_selector})
        found = self._of_kind("GET", api_version, kind, namespace=namespace, query=query, what="listing")
        return [{"apiVersion": api_version, "kind": kind, **item} for item in found["items"]]

    def delete(self, api_version: str, kind: str, name: str, *, namespace: str = "default") -> Resource | None:
        """Delete the object; returns the server's answer, None when there was none."""
        return self._of_kind("DELETE", api_version, kind, namespace=namespace, name=name, what="deleting") or None

    @staticmethod
    def eventually(check: Callable[[], T], *, within_seconds: float = 10.0) -> T:
        """Call `check` until it returns something truthy, and return that: at first each 0.05 s, later each 0.2 s.

        `OSError`, `LookupError`, `TypeError` and `AssertionError` out of `check` mean "not yet": the server is down, a
        field or the object is still missing. Raises: `AssertionError` after `within_seconds` (default 10).
        """
        deadline, pause = time.monotonic() + within_seconds, POLL_SECONDS
        while True:
            try:
                if result := check():
                    return result
                last: object = result
            except (OSError, LookupError, TypeError, AssertionError) as error:
                last = error
            if time.monotonic() > deadline:
                raise AssertionError(f"still not so after {within_seconds} s; the last answer was {last!r}")
            time.sleep(pause)
            pause = min(1.25 * pause, LONGEST_POLL_SECONDS)

    def service_account_token(self, namespace: str, name: str, *, expires_seconds: int = 3600) -> str:
        """A real token of a ServiceAccount, by TokenRequest; Kubernetes allows 600 s and more, the default is an hour.

        Raises: `SandboxError` when the ServiceAccount does not exist.
        """
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": expires_seconds},
        }
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        answer = _accepted(self.request("POST", path, request), what=f"a token for ServiceAccount {namespace}/{name}")
        return str(answer["status"]["token"])

    def _apply_one(self, resource: Resource) -> Resource:
        metadata, query = resource["metadata"], f"?fieldManager={FIELD_MANAGER}&force=true"
        namespace, name = metadata.get("namespace") or "default", metadata["name"]
        api_version, kind, what = resource["apiVersion"], resource["kind"], "applying"
        return self._of_kind(
            "PATCH", api_version, kind, resource, namespace=namespace, name=name, query=query, what=what
        )

    def _of_kind(
        self,
        method: str,
        api_version: str,
        kind: str,
        body: Resource | None = None,
        *,
        namespace: str | None,
        name: str = "",
        query: str = "",
        what: str,
    ) -> Resource:
        """The decoded answer, empty for a missing object. Raises: `SandboxError` with the API server's own message."""
        content_type = APPLY if method == "PATCH" else JSON
        deadline = time.monotonic() + DISCOVERY_SECONDS
        while True:
            known = (api_version, kind) in self._kinds
            path = self.path_of(api_version, kind, namespace=namespace, name=name)
            answer = self.request(method, path + query, body, content_type=content_type)
            if answer.status == 429 and time.monotonic() < deadline:
                time.sleep(POLL_SECONDS)
            elif known and answer.status == 404 and not _names_an_object(answer.body):
                del self._kinds[api_version, kind]  # the definition was deleted; there may be another one
            else:
                break
        if answer.status == 404 and name and method != "PATCH":
            return {}
        return _accepted(answer, what=f"{what} {identify(body)}" if body else f"{what} {kind} {name}".rstrip())

    def forget(self) -> None:
        """Close idle connections and forget the kinds of discovery."""
        self._connections.close()
        self._kinds.clear()

    def path_of(self, api_version: str, kind: str, *, namespace: str | None, name: str = "") -> str:
        """The path of an object, or of all of its kind. Raises: `SandboxError` for a kind that is not served."""
        root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        resource = self._discovered(root, api_version, kind)
        scope = f"/namespaces/{quote(namespace)}" if resource["namespaced"] and namespace else ""
        return f"{root}{scope}/{resource['name']}" + (f"/{quote(name, safe='')}" if name else "")

    def _discovered(self, root: str, api_version: str, kind: str) -> Resource:
        """The kind in discovery."""
        if known := self._kinds.get((api_version, kind)):
            return known

        def find() -> Resource | None:
            answer = self.request("GET", root)
            resources = answer.body["resources"] if answer.status == 200 else ()
            return next((each for each in resources if each["kind"] == kind and "/" not in each["name"]), None)

        try:
            found = self.eventually(find, within_seconds=DISCOVERY_SECONDS) or {}
        except AssertionError:
            raise SandboxError(
                f"{self.url} serves no kind {kind} of {api_version}: apply its CustomResourceDefinition first"
            ) from None
        self._kinds[api_version, kind] = found
        return found


def _names_an_object(body: Any) -> bool:
    """Whether an answer with 404 has the name of the missing object. Without a name, the kind is not served."""
    return isinstance(body, Mapping) and bool((body.get("details") or {}).get("name"))


def _accepted(answer: AdminAnswer, *, what: str) -> Resource:
    """The body of an answer. Raises: `SandboxError` with the API server's own message, for a refusal."""
    status, body = answer
    if status >= 400:
        message = body.get("message", "") if isinstance(body, Mapping) else body
        raise SandboxError(f"{what} was refused ({status}): {message}")
    return dict(body)
