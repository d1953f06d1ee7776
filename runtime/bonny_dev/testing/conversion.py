"""Conversion: the check that nothing is lost between a version and the hub.

You need it in a unit test of conversion functions, with objects that use every field:

    @pytest.mark.parametrize("widget", [WIDGET_V1, WIDGET_V2])
    def test_nothing_is_lost_between_the_versions(widget):
        round_trip(widget, WidgetV1, WidgetV2)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bonny.api import Version
from bonny.api.conversion import convert
from bonny.resource import Resource


def round_trip(resource: Mapping[str, Any], version: type[Version], hub: type[Version]) -> Resource:
    """Convert `resource`, an object of either version, to the other one and back; return it in the other's form.

    Raises: `AssertionError`, which shows what came back; `InvalidObject` when the API server would refuse it in one of
    the forms; `OptionError` when a function changes what is not its own.
    """
    here, there = (hub, version) if str(resource["apiVersion"]).endswith(f"/{hub.version}") else (version, hub)
    given = here.check(resource)
    other = there.check(convert(given, here, there))
    back = here.check(convert(other, there, here))
    assert back == given, f"{here.version} came back from {there.version} as {back}, and was {given}"  # noqa: S101
    return other
