"""Scrapers: decides which clients may read /metrics, as the API server says of their tokens.

A TokenReview says whose token it is, and a SubjectAccessReview whether that user may `get` /metrics: as for
controller-runtime's filter, and for the /metrics of the API server itself.

Guarantees: without a positive answer to both nothing is shown, also while the API server does not answer. A positive
answer counts for `SECONDS`, then it is requested again. The API server is asked about `NEW_TOKENS` new tokens in a
second at most, whatever clients send; about a token that was good before, once at a time. Tokens are not kept: only a
digest is.

RBAC: `metrics_rules`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import time
from collections import deque
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from http import HTTPStatus
from typing import Final, NamedTuple

from ..client.api import Client
from ..client.errors import Forbidden, missing_rule
from ..errors import ApiError, UsageError
from ..kinds import Kind
from ..operator import Operator
from ..resource import Resource
from ..tls.secret import TlsSecret

TOKEN_REVIEW: Final = Kind("authentication.k8s.io/v1", "TokenReview")
ACCESS_REVIEW: Final = Kind("authorization.k8s.io/v1", "SubjectAccessReview")
SCRAPE: Final = {"path": "/metrics", "verb": "get"}
BEARER: Final = re.compile(rb"(?i:bearer) +([\x21-\x7e]+) *")

SECONDS: Final = {
    HTTPStatus.OK: 60.0,
    HTTPStatus.UNAUTHORIZED: 10.0,
    HTTPStatus.FORBIDDEN: 10.0,
    HTTPStatus.SERVICE_UNAVAILABLE: 1.0,
}
"""How long a verdict counts. A binding that is added works within 10 s, one that is removed for a minute more."""

# Prometheus gives up a scrape after 10 s.
REVIEW_SECONDS: Final = 5.0
# A scraper has one token, and another one each hour.
NEW_TOKENS: Final = 5
NEW_TOKENS_OF_ONE_ADDRESS: Final = 3
# Tokens that were good within this time pass a flood of new ones, which fills a tenth of what is kept.
KNOWN_SECONDS: Final = 3600.0
MOST_KEPT: Final = 500

log = logging.getLogger("bonny.metrics_auth.scrapers")


def metrics_secret(operator: Operator, namespace: str) -> TlsSecret:
    """The Secret with the certificate that scrapers are shown, and with the CAs that they trust."""
    return TlsSecret(operator.name, "metrics", operator.name, namespace, operator.deploy.certificates == "own")


def metrics_rules(operator: Operator, *, namespace: str) -> Iterator[tuple[str, Resource]]:
    """The RBAC rules by namespace, empty for the ClusterRole: the Secret, and reviews of who scrapes."""
    yield namespace, metrics_secret(operator, namespace).rule()
    for kind in (TOKEN_REVIEW, ACCESS_REVIEW):
        yield "", {"apiGroups": [kind.group], "resources": [kind.plural], "verbs": ["create"]}


class Verdict(NamedTuple):
    """The answer to a client; `text` says why, and is for that client alone."""

    status: HTTPStatus
    text: str = ""


UNAUTHORIZED: Final = Verdict(HTTPStatus.UNAUTHORIZED, "send a token of this cluster: Authorization: Bearer <token>")
TOO_MANY: Final = Verdict(HTTPStatus.TOO_MANY_REQUESTS, "too many new tokens: try again in some seconds")
UNKNOWN: Final = Verdict(HTTPStatus.SERVICE_UNAVAILABLE, "the API server cannot authorize you: try again")


class _Kept(NamedTuple):
    verdict: Verdict
    until: float
    """The verdict counts until then."""

    known: float
    """The token does not count as a new one until then."""


class Scrapers:
    """The clients of one server of /metrics."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._key = os.urandom(32)
        self._kept: dict[bytes, _Kept] = {}
        """By the digests of tokens, the last one reviewed at the end."""

        self._reviews: dict[bytes, asyncio.Task[Verdict]] = {}
        self._refused = False
        self._new: deque[tuple[float, str]] = deque(maxlen=NEW_TOKENS)
        """When new tokens were reviewed, and from which address they came."""

    async def verdict(self, headers: Iterable[tuple[bytes, bytes]], *, address: str) -> Verdict:
        """Whether the client at `address` may read /metrics, by the headers of its request. Raises: nothing."""
        sent = [BEARER.fullmatch(value) for name, value in headers if name == b"authorization"]
        if len(sent) != 1 or sent[0] is None:
            return UNAUTHORIZED
        digest, now = blake2b(sent[0][1], key=self._key).digest(), time.monotonic()
        kept = self._kept.get(digest)
        if kept is not None and now < kept.until:
            return kept.verdict
        if digest not in self._reviews:
            known = kept.known if kept else 0.0
            if now >= known and not self._admits(address, now):
                return TOO_MANY
            review = self._review(digest, sent[0][1].decode(), known)
            self._reviews[digest] = asyncio.create_task(review, name="a review of a scraper")
        return await asyncio.shield(self._reviews[digest])

    def _admits(self, address: str, now: float) -> bool:
        """Whether another new token may be reviewed now."""
        recent = [of for at, of in self._new if now - at < 1.0]
        if len(recent) >= NEW_TOKENS or recent.count(address) >= NEW_TOKENS_OF_ONE_ADDRESS:
            return False
        self._new.append((now, address))
        return True

    async def _review(self, digest: bytes, token: str, known: float) -> Verdict:
        try:
            async with asyncio.timeout(REVIEW_SECONDS):
                verdict = await self._ask(token)
        except (ApiError, UsageError, TimeoutError):
            # Without its text, which a proxy may make of what it was sent. The log says which permission is missing; it
            # and /readyz say what is wrong with the API server.
            verdict = UNKNOWN
        finally:
            del self._reviews[digest]
        now = time.monotonic()
        if verdict is not UNKNOWN:
            known = now + KNOWN_SECONDS if verdict.status is HTTPStatus.OK else 0.0
        lasting = {key: each for key, each in self._kept.items() if now < max(each.until, each.known) and key != digest}
        self._kept = {**lasting, digest: _Kept(verdict, now + SECONDS[verdict.status], known)}
        if len(self._kept) > MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        return verdict

    async def _ask(self, token: str) -> Verdict:
        """Raises: `ApiError`, `UsageError`."""
        match (await self._create(TOKEN_REVIEW, {"token": token})).get("status"):
            case {"authenticated": True, "user": {"username": str(name)} as user}:
                subject = {"user": name, **{key: user[key] for key in ("uid", "groups", "extra") if key in user}}
                asked = {"nonResourceAttributes": SCRAPE, **subject}
                match (await self._create(ACCESS_REVIEW, asked)).get("status"):
                    case {"allowed": True}:
                        return Verdict(HTTPStatus.OK)
                    case {"allowed": False}:
                        return Verdict(HTTPStatus.FORBIDDEN, f"user {name} may not get /metrics")
                raise ApiError("a SubjectAccessReview came back without a decision")
        return UNAUTHORIZED

    async def _create(self, kind: Kind, spec: Resource) -> Resource:
        """The answer to a review. Raises: `ApiError`, `UsageError`; a refusal by RBAC is logged once."""
        try:
            answer = await self._client.create(kind, _review(kind, spec))
        except Forbidden:
            if not self._refused:
                rule = missing_rule(group=kind.group, plural=kind.plural, verbs=("create",))
                log.warning("clients of /metrics cannot be reviewed", extra={"missing_rule": rule})
            self._refused = True
            raise
        self._refused = False
        return answer


def _review(kind: Kind, spec: Resource) -> Resource:
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {}, "spec": spec}
