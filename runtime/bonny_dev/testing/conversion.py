"""Conversion: the check that nothing is lost between the versions of a kind.

You need it in a unit test of conversion functions, with objects that use every field:

    @pytest.mark.parametrize("widget", [WIDGET_V1, WIDGET_V2])
    def test_nothing_is_lost_between_the_versions(widget):
        round_trip(widget, WidgetV1, WidgetV2)

The objects are converted as in the running operator, where annotations carry values that another version cannot hold.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from copy import deepcopy
from itertools import pairwise, product
from typing import Any, Final

import msgspec

from bonny.api import Version
from bonny.api.conversion import converted
from bonny.carried import load
from bonny.errors import OptionError
from bonny.resource import Resource

from ..crd import check_object

_OURS: Final = ("labels", "annotations")


def round_trip(resource: Mapping[str, Any], *versions: type[Version], carried: Collection[str] = ()) -> Resource:
    """Convert `resource` from its version to each of the others, from there to each one, and back; return it in the
    first of the others. `versions` are two or all versions of the kind; one is the hub.

    `carried` are the fields that may be lost on the way, as `spec.comment`: annotations carry them. Default: none.
    Raises: `AssertionError`, which shows what came back, or the fields that are carried; `InvalidObject` when the API
    server would refuse it in another version; `OptionError` when a function changes what is not its own; what the
    functions raise.
    """
    if converted(versions):
        load("webhooks", what=f"conversion between versions of {versions[0].kind} whose fields differ")
    else:
        return _copied(resource, versions)
    from bonny.webhooks.conversion import Converter  # noqa: PLC0415  its extra may be absent

    group, _, name = str(resource["apiVersion"]).rpartition("/")
    here = next(each for each in versions if each.version == name)
    others = [each for each in versions if each is not here]
    given, converter, seen = check_object(here, resource), Converter(versions, group), []
    for chain in product(others, others):
        now, plain = given, given
        for one, other in pairwise(dict.fromkeys((here, *chain))):
            plain = check_object(other, convert(plain, one, other))
            now = converter.convert(now, f"{group}/{other.version}")
            seen.append(now)
        back = check_object(here, converter.convert(now, f"{group}/{name}"))
        assert back == given, f"{name} came back from {chain[1].version} as {back}, and was {given}"  # noqa: S101
    if lost := sorted({path for each in seen for path in _carried(each)} - set(carried)):
        plain = check_object(here, convert(check_object(others[0], convert(given, here, others[0])), others[0], here))
        raise AssertionError(
            f"{name} came back from {others[0].version} as {plain}, and was {given}, so an annotation has to "
            f"carry {', '.join(lost)}: convert it, or set carried={lost}"
        )
    return check_object(others[0], convert(given, here, others[0]))


def _copied(resource: Mapping[str, Any], versions: Collection[type[Version]]) -> Resource:
    """`resource` in the first other version, while the fields are the same: the API server copies objects unchanged."""
    group, _, name = str(resource["apiVersion"]).rpartition("/")
    here = next(each for each in versions if each.version == name)
    other = next(each for each in versions if each is not here)
    return check_object(other, {**check_object(here, resource), "apiVersion": f"{group}/{other.version}"})


def _carried(resource: Resource) -> list[str]:
    """The paths of the values in its annotations, without those inside of them."""
    from bonny.webhooks.conversion import CARRIED  # noqa: PLC0415  its extra may be absent
    from bonny.webhooks.lost import Loss  # noqa: PLC0415

    annotations = resource["metadata"].get("annotations", {})
    texts = [text for key, text in annotations.items() if key.startswith(CARRIED)]
    paths = {loss.path for text in texts for loss in msgspec.json.decode(text, type=dict[str, Loss]).values()}
    names = [[step if isinstance(step, str) else "[]" for step in path] for path in paths if path[:-1] not in paths]
    return [".".join(name).replace(".[]", "[]") for name in names]


def convert(resource: Mapping[str, Any], source: type[Version], target: type[Version]) -> Resource:
    """A copy of `resource`, an object of `source`, as an object of `target`.

    Raises: `OptionError` when the versions are of different kinds, or a function changes the wrong metadata.
    """
    if source.kind != target.kind or resource.get("kind") != source.kind:
        raise OptionError(f"a {resource.get('kind')} cannot be converted from {source.kind} to {target.kind}")
    converted = deepcopy(dict(resource))
    for function in (() if source.hub else (source.to_hub,)) + (() if target.hub else (target.from_hub,)):
        before = deepcopy(converted)
        converted = function(converted)
        for name in ("kind", "metadata"):
            if _kept(before.get(name)) != _kept(converted.get(name)):
                raise OptionError(
                    f"{function.__qualname__} changes {name} of {source.kind}: a conversion may change spec, status, "
                    "labels and annotations"
                )
    group = str(resource["apiVersion"]).rpartition("/")[0]
    return {**converted, "apiVersion": f"{group}/{target.version}"}


def _kept(part: Any) -> Any:
    return {key: value for key, value in part.items() if key not in _OURS} if isinstance(part, dict) else part
