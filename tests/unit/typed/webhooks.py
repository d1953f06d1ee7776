"""Webhooks: a version class in brackets, its typed spec, and the test of a review."""

from __future__ import annotations

from typing import Any, assert_type

from bonny import Kind, Resource, Spec, Version
from bonny.webhooks import Admission, Denied, Review
from bonny_dev import testing


class GaugeSpec(Spec):
    """The desired state."""

    limit: int = 0
    unit: str | None = None


class Gauge(Version):
    """Something that is measured."""

    kind = "Gauge"
    version = "v1"
    spec: GaugeSpec


class GaugeAdmission(Admission[Gauge]):
    operations = ("CREATE",)

    def default(self, review: Review[Gauge]) -> None:
        assert_type(review.spec, GaugeSpec)
        review.spec.limit = review.spec.limit or 3
        review.spec.limit = "3"  # error: assignment, reportAttributeAccessIssue
        review.spec.limits = 3  # error: attr-defined, reportAttributeAccessIssue
        review.spec = GaugeSpec()  # error: misc, reportAttributeAccessIssue

    async def validate(self, review: Review[Gauge]) -> None:
        assert_type(review.old_spec.unit, str | None)
        assert_type(review.old, Resource | None)
        assert_type(review.user.groups, tuple[str, ...])
        review.deny("must be even", field="spec.limit")
        review.deny("must be even", "spec.limit")  # error: call-arg, reportCallIssue
        raise Denied("must be even", field="spec.limit", forbidden=True)


class Both(Admission[Gauge]):
    async def default(self, review: Review[Gauge]) -> None: ...

    def validate_delete(self, review: Review[Gauge]) -> None: ...


class Pods(Admission[Any]):
    resource = Kind("v1", "Pod")

    def validate(self, review: Review[Any]) -> None:
        assert_type(review.spec, Any)


async def reviews(gauge: Resource) -> None:
    reviewed = await testing.review(GaugeAdmission, gauge, old=gauge, user="jane", groups=["admins"], dry_run=True)
    assert_type(reviewed.allowed, bool)
    assert_type(reviewed.resource, Resource)
    assert_type(reviewed.causes, tuple[tuple[str, str], ...])
    await testing.review(GaugeAdmission, gauge, operation="GET")  # error: arg-type, reportArgumentType
    await testing.review(Gauge, gauge)  # error: arg-type, reportArgumentType
