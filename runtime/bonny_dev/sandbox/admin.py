"""Admin: what a test or a demo asks of the API server as its administrator, in a few plain calls.

You need it to arrange and check things around an operator under test. An operator itself uses `bonny.client`, which is
asynchronous and survives faults; these calls are blocking, unretried and have all rights.
"""

from __future__ import annotations

import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import quote, urlencode

from bonny.resource import Resource, identify

from .processes import SandboxError

__all__ = ["Admin", "Answer"]

T = TypeVar("T")

REQUEST_SECONDS: Final = 30.0
# Between an applied CustomResourceDefinition and its kind in discovery lie some tens of milliseconds, more under load.
DISCOVERY_SECONDS: Final = 10.0
POLL_SECONDS: Final = 0.05
FIELD_MANAGER: Final = "sandbox"


class Answer(NamedTuple):
    """What the API server answered: the HTTP status, and the body as decoded JSON or as text."""

    status: int
    body: Any


class Served(NamedTuple):
    """How discovery describes a kind."""

    plural: str
    namespaced: bool


class Admin:
    """Blocking requests to one API server with one token."""

    def __init__(self, *, url: str, token: str, ca_file: Path) -> None:
        self.url = url
        self.token = token
        self.ca_file = ca_file
        self._opener: urllib.request.OpenerDirector | None = None

    def request(
        self,
        method: str,
        path: str,
        body: Resource | None = None,
        *,
        content_type: str = "application/json",
        token: str | None = None,
        timeout: float = REQUEST_SECONDS,
    ) -> Answer:
        """Send one request, refusals included in the answer: `request("GET", "/readyz").status == 200`.

        `token` replaces the administrator's: the way to see what somebody else may do. `timeout` (default 30 s) limits
        the wait for each piece of the answer.
        Raises: `OSError` when there is no (whole) answer.
        """
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {token or self.token}", "Accept": "application/json"}
        if data is not None:
            headers["Content-Type"] = content_type
        request = urllib.request.Request(self.url + path, data=data, headers=headers, method=method)  # noqa: S310
        try:
            with self._connection().open(request, timeout=timeout) as response:
                return decoded(response.status, response.read())
        except urllib.error.HTTPError as refusal:
            with refusal:
                return decoded(refusal.code, refusal.read())
        except HTTPException as error:
            raise ConnectionError(f"{method} {path}: the answer of {self.url} broke off") from error

    def apply(self, objects: Resource | Iterable[Resource]) -> list[Resource]:
        """Server-side apply, in the given order; returns the live objects. A resource may directly follow its CRD.

        Raises: `SandboxError` with the API server's message when one is refused; those before it stay applied.
        """
        given = [objects] if isinstance(objects, dict) else list(objects)
        return [self._apply_one(resource) for resource in given]

    def get(self, api_version: str, kind: str, name: str, *, namespace: str = "default") -> Resource | None:
        """The object, or None when there is none. `namespace` is ignored for cluster-scoped kinds."""
        return self._one("GET", api_version, kind, name, namespace=namespace)

    def items(
        self, api_version: str, kind: str, *, namespace: str | None = None, label_selector: str = ""
    ) -> list[Resource]:
        """All objects of a kind: of one namespace, or (default) of all."""
        query = "?" + urlencode({"labelSelector": label_selector})
        path = self._path(api_version, kind, namespace=namespace) + query
        found: list[Resource] = self._accepted("GET", path, what=f"listing {kind}").body["items"]
        return [{"apiVersion": api_version, "kind": kind, **item} for item in found]

    def delete(self, api_version: str, kind: str, name: str, *, namespace: str = "default") -> Resource | None:
        """Delete the object; returns the server's answer, None when there was none."""
        return self._one("DELETE", api_version, kind, name, namespace=namespace)

    @staticmethod
    def eventually(check: Callable[[], T], *, within_seconds: float = 10.0) -> T:
        """Call `check` until it returns something truthy, and return that.

        `OSError`, `LookupError`, `TypeError` and `AssertionError` out of `check` mean "not yet": the server is down, a
        field or the object is still missing. Raises: `AssertionError` after `within_seconds` (default 10).
        """
        deadline = time.monotonic() + within_seconds
        while True:
            last: object = None
            try:
                last = result = check()
                if result:
                    return result
            except (OSError, LookupError, TypeError, AssertionError) as error:
                last = error
            if time.monotonic() > deadline:
                raise AssertionError(f"still not so after {within_seconds} s; the last answer was {last!r}")
            time.sleep(POLL_SECONDS)

    def service_account_token(self, namespace: str, name: str, *, expires_seconds: int = 3600) -> str:
        """A real token of a ServiceAccount, by TokenRequest; Kubernetes allows 600 s and more, the default is an hour.

        Raises: `SandboxError` when the ServiceAccount does not exist.
        """
        answer = self._accepted(
            "POST",
            f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token",
            {
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                "spec": {"expirationSeconds": expires_seconds},
            },
            what=f"a token for ServiceAccount {namespace}/{name}",
        )
        token: str = answer.body["status"]["token"]
        return token

    def _apply_one(self, resource: Resource) -> Resource:
        metadata = resource["metadata"]
        namespace = metadata.get("namespace") or "default"
        path = self._path(resource["apiVersion"], resource["kind"], namespace=namespace, name=metadata["name"])
        applied: Resource = self._accepted(
            "PATCH",
            f"{path}?fieldManager={FIELD_MANAGER}&force=true",
            resource,
            content_type="application/apply-patch+yaml",
            what=f"applying {identify(resource)}",
        ).body
        return applied

    def _one(self, method: str, api_version: str, kind: str, name: str, *, namespace: str) -> Resource | None:
        path = self._path(api_version, kind, namespace=namespace, name=name)
        answer = self.request(method, path)
        if answer.status == 404:
            return None
        result: Resource = accepted(answer, what=f"{method} {kind} {name}").body
        return result

    def _accepted(
        self, method: str, path: str, body: Resource | None = None, *, content_type: str = "application/json", what: str
    ) -> Answer:
        return accepted(self.request(method, path, body, content_type=content_type), what=what)

    def _path(self, api_version: str, kind: str, *, namespace: str | None, name: str = "") -> str:
        root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        served = self._served(root, api_version, kind)
        scope = f"/namespaces/{quote(namespace)}" if served.namespaced and namespace else ""
        return f"{root}{scope}/{served.plural}" + (f"/{quote(name, safe='')}" if name else "")

    def _served(self, root: str, api_version: str, kind: str) -> Served:
        """Find the kind in discovery; asked each time, since tests delete and re-create definitions."""

        def find() -> Served | None:
            answer = self.request("GET", root)
            resources = answer.body["resources"] if answer.status == 200 else ()
            for resource in resources:
                if resource["kind"] == kind and "/" not in resource["name"]:
                    return Served(resource["name"], resource["namespaced"])
            return None

        try:
            found = self.eventually(find, within_seconds=DISCOVERY_SECONDS)
        except AssertionError:
            found = None
        if found is None:
            raise SandboxError(
                f"{self.url} serves no kind {kind} of {api_version}: apply its CustomResourceDefinition first"
            )
        return found

    def _connection(self) -> urllib.request.OpenerDirector:
        if self._opener is None:
            context = ssl.create_default_context(cafile=self.ca_file)
            # No proxy: HTTPS_PROXY is meant for the Internet, and a proxy cannot reach our loopback address.
            self._opener = urllib.request.build_opener(
                urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
            )
        return self._opener


def decoded(status: int, body: bytes) -> Answer:
    """The body as JSON where it is JSON, else as text."""
    text = body.decode(errors="replace")
    try:
        return Answer(status, json.loads(text))
    except ValueError:
        return Answer(status, text)


def accepted(answer: Answer, *, what: str) -> Answer:
    """`answer` unless it is a refusal. Raises: `SandboxError` with the API server's own message."""
    if answer.status < 400:
        return answer
    message = answer.body.get("message", "") if isinstance(answer.body, Mapping) else answer.body
    raise SandboxError(f"{what} was refused ({answer.status}): {message}")
