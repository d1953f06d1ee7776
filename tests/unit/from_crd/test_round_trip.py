"""Any spec that version classes can say comes back: classes, definition, other classes, an equal definition."""

from __future__ import annotations

from hypothesis import HealthCheck, given, reject, settings

from bonny.api import Spec, Version
from bonny.errors import OptionError
from bonny_dev.crd.definition import crds
from bonny_dev.from_crd.port import port
from tests.support.effort import examples
from tests.support.schemas import specs_of_any_shape


@settings(deadline=None, max_examples=examples(40), suppress_health_check=list(HealthCheck))
@given(specs_of_any_shape())
def test_the_classes_of_any_definition_of_ours_say_the_same(spec: type[Spec]) -> None:
    attributes = {"kind": "Widget", "version": "v1", "storage": True, "hub": True, "__annotations__": {"spec": spec}}
    widget: type[Version] = type("Widget", (Version,), attributes)
    try:
        (original,) = crds([widget], "example.com")
    except OptionError:  # a rule on a field of any content
        reject()

    assert port(original, group="example.com").differences == []
