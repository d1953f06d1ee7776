"""Lamps: a kind with two versions whose fields differ, and an admission with all handlers, for what manifests say.

You need it where objects for webhooks are made or applied. No handler and no conversion is ever called.
"""

from __future__ import annotations

from bonny import Resource, Spec, Version
from bonny.webhooks import Admission, Review


class LampSpec(Spec):
    """The desired state of a Lamp."""

    brightness: int = 1


class Lamp(Version):
    """A lamp."""

    kind = "Lamp"
    version = "v1"
    storage = True
    hub = True
    spec: LampSpec


def unchanged(resource: Resource) -> Resource:
    """A conversion."""
    return resource


class OldLampSpec(Spec):
    """As it was called before."""

    light: int = 1


class OldLamp(Version):
    """Another version, whose fields differ."""

    kind = "Lamp"
    version = "v1alpha1"
    spec: OldLampSpec
    to_hub = staticmethod(unchanged)
    from_hub = staticmethod(unchanged)


class LampAdmission(Admission[Lamp]):
    """All that an admission can do."""

    def default(self, review: Review[Lamp]) -> None: ...

    def validate(self, review: Review[Lamp]) -> None: ...

    def validate_delete(self, review: Review[Lamp]) -> None: ...
