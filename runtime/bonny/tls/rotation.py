"""Rotation: decides which step brings the certificate of a server forward; the shell around it is `issuer`.

The Secret holds the certificate that replicas serve (`tls.crt`, `tls.key`), all CAs that clients shall trust
(`ca.crt`), and, while a rotation is pending, what replicas will serve next (`next.crt`, `next.key`). The steps:

1. BUNDLE: a new certificate becomes the next one, and its CA is added to `ca.crt`.
2. INJECT: everything that is registered, where clients find what they trust, gets `ca.crt` as its bundle.
3. After all have had it for `spread` seconds, LEAF: the next certificate becomes the served one.

A rotation begins after two thirds of the certificate's life; when it has expired, does not fit its key or its CAs, or
lacks a name; and when a user adds the key `next.crt`. CAs leave `ca.crt` with a later BUNDLE, after they have
expired: their keys are gone, so that one which is trusted for longer does no harm, and a change of a bundle may cost
its clients much (a caBundle: all caches of a kind with conversion).

Guarantees: a certificate is served only after all that is registered trusts it, and is trusted for as long as a replica
may serve it. Nothing but the Secret and what is registered is remembered: every leader goes on where the last one
stopped. A CA that is registered and not in the Secret, as after the Secret was emptied by hand, is taken back into it.

Assumptions: clocks differ by at most an hour; each client learns of a change within `spread` seconds; no user removes
a CA from the Secret and from all that is registered while it is in use.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from .certificates import SKEW, Leaf, issue, read, split
from .secret import BUNDLE, CERTIFICATE, KEY

NEXT_CERTIFICATE: Final = "next.crt"
NEXT_KEY: Final = "next.key"

URGENT_SECONDS: Final = 5.0
"""Waited instead of `spread` while the Secret has nothing that can be served: a replica that starts now needs it."""

RENEWAL: Final = 2 / 3
"""The part of a certificate's life after which it is renewed."""

# More are in a bundle only while a user or a tool empties the Secret again and again.
MOST_CAS: Final = 50


class RotationStep(StrEnum):
    """A step, or rest."""

    BUNDLE = "bundle"
    INJECT = "inject"
    LEAF = "leaf"
    REST = "rest"


@dataclass(frozen=True, slots=True)
class RotationDecision:
    """One step. Decide again after it, and after REST when `seconds` are over or something has changed."""

    step: RotationStep
    data: Mapping[str, bytes]
    """The data of the Secret as it is, or as BUNDLE and LEAF write it."""

    bundle: bytes
    """The bundle that all that is registered shall have, as PEM."""

    leaf: Leaf | None
    """The certificate that is served; None when none can be."""

    seconds: float = math.inf


class Rotation:
    """The rotation of one Secret, during one term of a leader."""

    def __init__(self, names: Collection[str], *, spread: float) -> None:
        """`names` are the hosts in the certificate, and `spread` are the seconds before LEAF."""
        self._names = names
        self._spread = spread
        self._bundle = b""
        self._since = 0.0
        """When `_bundle` was first seen in all that is registered."""

    def decide(
        self, data: Mapping[str, bytes], registered: Collection[bytes], *, now: datetime, clock: float
    ) -> RotationDecision:
        """The next step. `registered` are the bundles, empty where there is none; `clock` are monotonic seconds."""
        stored = split(data.get(BUNDLE, b""))
        ends = stored | split(b"".join(registered))
        current = sorted((ca for ca, end in ends.items() if end + SKEW > now), key=ends.__getitem__)[-MOST_CAS:]
        leaf = self._usable(data, CERTIFICATE, KEY, current, now)
        following = self._usable(data, NEXT_CERTIFICATE, NEXT_KEY, current, now)
        rotates = leaf is None or NEXT_CERTIFICATE in data or now >= leaf.not_before + RENEWAL * leaf.life
        bundle = b"".join(stored)
        if rotates and following is None:
            issued = issue(self._names, now=now)
            new = {NEXT_CERTIFICATE: issued.certificate, NEXT_KEY: issued.key, BUNDLE: b"".join((*current, issued.ca))}
            return RotationDecision(RotationStep.BUNDLE, {**data, **new}, bundle, leaf)
        if not stored.keys() >= set(current):
            return RotationDecision(RotationStep.BUNDLE, {**data, BUNDLE: b"".join(current)}, bundle, leaf)
        if any(each != bundle for each in registered):
            self._bundle = b""
            return RotationDecision(RotationStep.INJECT, data, bundle, leaf)
        if self._bundle != bundle:
            self._bundle, self._since = bundle, clock
        if not rotates:
            return RotationDecision(RotationStep.REST, data, bundle, leaf)
        seconds = self._since + (self._spread if leaf else min(self._spread, URGENT_SECONDS)) - clock
        if seconds > 0:
            return RotationDecision(RotationStep.REST, data, bundle, leaf, seconds)
        moved = {CERTIFICATE: data[NEXT_CERTIFICATE], KEY: data[NEXT_KEY]}
        kept = {name: value for name, value in data.items() if name not in (NEXT_CERTIFICATE, NEXT_KEY)}
        return RotationDecision(RotationStep.LEAF, kept | moved, bundle, following)

    def _usable(
        self, data: Mapping[str, bytes], certificate: str, key: str, cas: Iterable[bytes], now: datetime
    ) -> Leaf | None:
        leaf = read(data.get(certificate, b""), data.get(key, b""), cas)
        return leaf if leaf and leaf.not_after > now and leaf.names >= set(self._names) else None
