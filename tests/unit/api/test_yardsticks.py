"""Definitions in use everywhere, said with version classes: equal to the originals, but for what is explained."""

from __future__ import annotations

from pathlib import Path

import pytest

from bonny.api import Version
from bonny_dev.crd import schema_of
from tests.support.yardsticks import facts
from tests.support.yardsticks.certificate import Certificate
from tests.support.yardsticks.http_route import HTTPRoute
from tests.support.yardsticks.service_monitor import ServiceMonitor

TABLES = Path(facts.__file__).parent

# Path: why ours differs. At the root of each, ours leaves out apiVersion, kind and metadata, which are implied there.
EXPLAINED = {
    "certificate": {},
    "service_monitor": {
        "spec.nativeHistogramMinBucketFactor": "the exponent of a quantity is a whole number, as Kubernetes reads it",
        "status.bindings[].conditions[].type": "a length beside an enumeration says nothing",
    },
    "http_route": {},
}


@pytest.mark.parametrize(
    ("name", "version"), [("certificate", Certificate), ("service_monitor", ServiceMonitor), ("http_route", HTTPRoute)]
)
def test_a_version_class_says_what_the_original_says(name: str, version: type[Version]) -> None:
    theirs, ours = facts.read(TABLES / f"{name}.txt"), facts.of_schema(schema_of(version))

    differing = {path for path in theirs.keys() | ours.keys() if theirs.get(path) != ours.get(path)}

    assert len(theirs) > 100  # the table was really read
    assert differing == EXPLAINED[name].keys()
