"""Conversion: answers the API server, which asks for objects of one version in another one.

You need it to serve versions whose fields differ. The functions are `to_hub` and `from_hub` of the version classes.

Guarantees: an object of a known version is always converted, because one that fails hides all objects of its kind. A
value that the other version cannot hold, or that a function loses or fails on, comes back when the object is converted
back, unless the field that it belongs to was changed meanwhile. Until then an annotation of its own carries it, so that
a field manager can remove it. Metadata other than labels and annotations stays.
Does not: check limits and rules, which the API server does in the version that is written. Only values of a wrong type
are left out. Nothing is invented for a required field that is left out: controllers then read an invalid object, and do
not act on a value that no user chose.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Callable, Collection
from functools import cache, cached_property, partial
from http import HTTPStatus
from importlib.resources import files
from typing import Any, Final

import msgspec

from ..api.markers import EMBEDDED
from ..api.stored import TAKEN, as_stored, expanded, misfit, types_of
from ..api.version import Version, object_model
from ..core.objects import DEEPEST, UNREADABLE, flattened
from ..naming import is_label_value, is_qualified_name
from ..resource import Key, Resource
from .answers import Answer, aside
from .lost import Loss, digest, losses, places, restored
from .memory import MOST_MEMORY, needed

CARRIED: Final = "conversion.bonny.dev/"
"""Annotations that start with it carry values that the version at hand cannot hold: one each, with its version."""

# k8s.io/apimachinery, pkg/api/validation: TotalAnnotationSizeLimitB.
ANNOTATIONS_BYTES: Final = 256 * 1024
# To find the carried values that the user did not change: a few for each one that was changed. A try of a large object
# takes as long as hundreds of small ones; what is not tried stays in its annotation.
MOST_TRIES: Final = 512
MOST_TRIED_BYTES: Final = 2 * 2**20
OUTCOMES: Final = ("converted", "carried", "failed", "lost")
"""Nothing was lost; annotations carry what was; a function failed, too; they are too long for annotations."""

log = logging.getLogger("bonny.webhooks")

_OURS: Final = ("labels", "annotations")
_TEXT: Final[Resource] = {"type": "string"}
_TEXTS: Final[Resource] = {"type": "object", "additionalProperties": _TEXT}
_METADATA: Final = {"name": _TEXT, "namespace": _TEXT, "generateName": _TEXT, "labels": _TEXTS, "annotations": _TEXTS}
# Types without which the API server cannot read an embedded object.
_EMBEDDED_TYPES: Final[Resource] = {
    "apiVersion": _TEXT,
    "kind": _TEXT,
    "metadata": {"type": "object", "properties": _METADATA},
}


# An empty mapping that no API server writes, and that no text of an object contains: JSON strings have no raw tabs.
CUT: Final = b"{\t}"


class _Request(msgspec.Struct):
    uid: str
    objects: list[msgspec.Raw]
    version: str = msgspec.field(name="desiredAPIVersion")


class _Review(msgspec.Struct):
    request: _Request


def _request(body: bytes) -> _Request:
    """The request of a ConversionReview; where a decoder cannot follow it, with a `CUT` for what is nested too deeply.

    An answer of 400 would hide all objects of the list.
    """
    try:
        return msgspec.json.decode(body, type=_Review).request
    except UNREADABLE:
        return msgspec.json.decode(flattened(body, CUT), type=_Review).request


def is_deep(raw: bytes) -> bool:
    """Whether it is nested deeper than handlers get it: comparing it would take seconds, and block the lease."""
    return raw.count(b"{") + raw.count(b"[") > DEEPEST and flattened(raw) != raw


class _Form:
    """One version of a kind."""

    def __init__(self, version: type[Version]) -> None:
        self.version = version
        self.name = version.version

    @cached_property
    def schema(self) -> Resource:
        types: Resource = expanded(types_of(object_model(self.version).model), _table())
        metadata = {"type": "object", "properties": dict.fromkeys(_OURS, _TEXTS)}
        return types | {"properties": types["properties"] | {"metadata": metadata}}

    def fit(self, content: Resource, before: Resource) -> Resource:
        """`content` without values of a wrong type; invalid labels and annotations stay as `before`."""
        fitted: Resource = fitting(content, self.schema)
        metadata = before["metadata"] | fitted.get("metadata", {})
        if not all(is_qualified_name(key) and is_label_value(value) for key, value in metadata["labels"].items()):
            metadata["labels"] = before["metadata"]["labels"]
        if not all(is_qualified_name(key.lower()) for key in metadata["annotations"]):
            metadata["annotations"] = before["metadata"]["annotations"]
        return {**fitted, "metadata": metadata}


class Converter:
    """Converts objects between `versions`; `group` is that of versions which name none."""

    def __init__(self, versions: Collection[type[Version]], group: str) -> None:
        self._forms: dict[tuple[str, str], _Form] = {}
        self._hubs: dict[tuple[str, str], _Form] = {}
        self._reported: set[tuple[str, ...]] = set()
        self._turn = asyncio.Lock()
        """One request after the other; between them the lease is renewed."""

        self.objects: Counter[tuple[str, str]] = Counter()
        """Converted objects by kind and outcome; all that can be are there from the start."""

        for version in versions:
            own, form = version.group or group, _Form(version)
            self._forms[f"{own}/{version.version}", version.kind] = form
            if version.hub:
                self._hubs[own, version.kind] = form
                self.objects.update({(version.kind, outcome): 0 for outcome in OUTCOMES})

    async def answer(self, body: bytes) -> Answer:
        """Answer the ConversionReview `body`: one object for each, in their order."""
        try:
            request = _request(body)
            response: Resource = {"uid": request.uid, "result": {"status": "Success"}, "convertedObjects": []}
            async with self._turn:
                await asyncio.sleep(0)
                for raw in map(bytes, request.objects):
                    converted = await aside(raw, partial(self._converted, raw, request.version))
                    response["convertedObjects"].append(converted)
        except (msgspec.DecodeError, RecursionError):
            return HTTPStatus.BAD_REQUEST, b"not a ConversionReview of apiextensions.k8s.io/v1"
        except LookupError as error:
            response["result"] = {"status": "Failure", "message": error.args[0]}
        review = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response}
        return HTTPStatus.OK, msgspec.json.encode(review)

    def _converted(self, raw: bytes, api_version: str) -> msgspec.Raw:
        resource = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
        large = CUT in raw or needed(raw) > MOST_MEMORY or is_deep(raw)
        resource |= {name: msgspec.json.decode(resource[name]) for name in (TAKEN if large else resource)}
        return msgspec.Raw(msgspec.json.encode(self.convert(resource, api_version, large=large)))

    def convert(self, resource: Resource, api_version: str, *, large: bool = False) -> Resource:
        """`resource` in another version; a `large` one only gets its name. Raises: `LookupError` for an unknown one."""
        kind = resource["kind"]
        names = ((resource["apiVersion"], kind), (api_version, kind))
        if missing := [name for name in names if name not in self._forms]:
            raise LookupError(f"this release of the operator has no {missing[0][1]} in version {missing[0][0]}")
        source, target = (self._forms[name] for name in names)
        hub = self._hubs[api_version.rpartition("/")[0], kind]
        conversion = _Conversion(resource, self._report)
        try:
            for one, other in () if large else ((source, hub), (hub, target)):
                if one is not other:
                    conversion.go(one, other)
        except RecursionError:
            large = True
        if large:
            self._report(resource, "lost", f"{source.name} to {target.name}")
            self.objects[kind, "lost"] += 1
            return {**resource, "apiVersion": api_version}
        converted = conversion.object(conversion.content, target)
        outcome = "failed" if conversion.failed else "carried" if conversion.data else "converted"
        if conversion.data:
            annotations = converted["metadata"].get("annotations", {}) | conversion.annotations()
            if sum(len(f"{key}{value}".encode()) for key, value in annotations.items()) > ANNOTATIONS_BYTES:
                outcome = "lost"
            else:
                converted["metadata"]["annotations"] = annotations
            if outcome != "failed":
                self._report(resource, outcome, f"{source.name} to {target.name}")
        self.objects[kind, outcome] += 1
        return converted

    def _report(self, resource: Resource, outcome: str, of: str, error: str = "") -> None:
        """Log what happens for the first time; `objects` counts the rest."""
        if (key := (resource["kind"], outcome, of, error)) in self._reported:
            return
        self._reported.add(key)
        metadata = resource.get("metadata", {})
        extra = {"kind": resource["kind"], "object": str(Key(metadata.get("namespace", ""), metadata.get("name", "")))}
        extra |= {"conversion": of, **({"error": error} if error else {})}
        if outcome == "failed":
            log.warning("a conversion function failed; fields that both versions have were copied", extra=extra)
        elif outcome == "carried":
            log.info("an annotation carries values that the other version cannot hold", extra=extra)
        else:
            log.warning("values are too long for an annotation, and lost if the other version is written", extra=extra)


class _Conversion:
    """One object on its way. `content` are its fields, labels and annotations; `data` is what its annotations carry,
    by version."""

    def __init__(self, resource: Resource, report: Callable[..., None]) -> None:
        self._resource = resource
        self._report = report
        self.failed = False
        self.content = _content(resource)
        self.data: dict[str, list[Loss]] = {}
        for key, text in (resource["metadata"].get("annotations") or {}).items():
            if key.startswith(CARRIED):
                # Another client may have written it.
                with contextlib.suppress(msgspec.DecodeError, RecursionError):
                    for version, loss in msgspec.json.decode(text, type=dict[str, Loss]).items():
                        self.data.setdefault(version, []).append(loss)

    def annotations(self) -> dict[str, str]:
        """One for each value, and another if there was none: a field manager who takes a value back leaves no value."""
        return {
            f"{CARRIED}{digest((version, loss.path, loss.removes))}": msgspec.json.encode({version: loss}).decode()
            for version, lost in self.data.items()
            for loss in lost
        }

    def go(self, source: _Form, target: _Form) -> None:
        """Convert from `source` to `target`, one of which is the hub."""
        was, made = self.content, self._made(self.content, source, target)
        kept, own = self.data.pop(target.name, []), self.data.pop(source.name, [])
        content, lost = self._restored(made, kept, was, source, target)
        if places(losses(made, content, target.schema)) != places(kept):
            self.data[target.name] = kept  # the user changed what it belongs to, perhaps not for good
        if lost or own:
            again = self._made(content, target, source)
            back = ((self._restored(again, each, content, target, source)[0], each) for each in (own, lost))
            came = digest(content)
            whole = [msgspec.structs.replace(loss, whole=came) for loss in lost]
            self.data[source.name] = next((each for made, each in back if digest(made) == digest(was)), whole)
        self.content = content

    def object(self, content: Resource, form: _Form) -> Resource:
        """The whole object with this content."""
        metadata = {key: value for key, value in self._resource["metadata"].items() if key not in content["metadata"]}
        metadata |= {key: dict(value) for key, value in content["metadata"].items() if value}
        group = self._resource["apiVersion"].rpartition("/")[0]
        head = {"apiVersion": f"{group}/{form.name}", "kind": self._resource["kind"], "metadata": metadata}
        return {**content, **head}

    def _made(self, content: Resource, source: _Form, target: _Form) -> Resource:
        """The result of the function for `content`; if it fails, the fields that both versions have."""
        function = target.version.from_hub if source.version.hub else source.version.to_hub
        made = content
        try:
            text = msgspec.json.encode(self.object(content, source))
            text = msgspec.json.encode(function(msgspec.json.decode(text)))
            made = _content(msgspec.json.decode(text, type=Resource))
        except BaseException as error:  # noqa: BLE001  also sys.exit: it must not hide all objects of the kind
            self.failed = True
            self._report(self._resource, "failed", function.__qualname__, type(error).__name__)
        return target.fit(as_stored(made, target.schema), content)

    def _restored(
        self, made: Resource, kept: list[Loss], was: Resource, source: _Form, target: _Form
    ) -> tuple[Resource, list[Loss]]:
        """The object `made` from what `was` there with the kept values, and the losses that `source` still has.

        A value is used if the way back does not lead further away from what the object is now.
        """
        lost, whole = losses(self._made(made, target, source), was, source.schema), digest(was)
        groups = [sorted(kept, key=lambda loss: msgspec.json.encode(loss.path))]
        left = MOST_TRIED_BYTES
        for _ in range(MOST_TRIES):
            if left <= 0 or not groups or not (group := groups.pop()):
                break
            candidate = target.fit(restored(made, group, target.schema), made)
            left -= len(msgspec.json.encode((candidate, was)))  # a value that fits makes all further tries longer
            remaining = losses(self._made(candidate, target, source), was, source.schema)
            if {loss.whole for loss in group} == {whole} or places(remaining) <= places(lost):
                made, lost = candidate, remaining
            elif middle := len(group) // 2:
                groups += [group[middle:], group[:middle]]
        return made, lost


def fitting(value: Any, schema: Resource) -> Any:
    """A copy of `value`, a result of `as_stored`, without parts of a wrong type; UNSET if it is of a wrong type itself.

    Readers in other languages fail on a whole list for one value of a wrong type. Limits and patterns do not count.
    """
    if misfit(value, schema):
        return msgspec.UNSET
    if isinstance(value, dict):
        fields = {**(_EMBEDDED_TYPES if EMBEDDED in schema else {}), **schema.get("properties", {})}
        other = schema.get("additionalProperties")
        kept = {name: fitting(child, fields.get(name, other) or {}) for name, child in value.items()}
        return {name: child for name, child in kept.items() if child is not msgspec.UNSET}
    if isinstance(value, list):
        items = [fitting(item, schema.get("items") or {}) for item in value]
        return [item for item in items if item is not msgspec.UNSET]
    return value


def _content(resource: Resource) -> Resource:
    """Its fields, labels and annotations. Raises: `msgspec.ValidationError` for labels that are not text."""
    metadata = resource.get("metadata") or {}
    own = {name: msgspec.convert(metadata.get(name) or {}, dict[str, str]) for name in _OURS}
    own["annotations"] = {key: value for key, value in own["annotations"].items() if not key.startswith(CARRIED)}
    return {name: value for name, value in resource.items() if name not in TAKEN} | {"metadata": own}


@cache
def _table() -> dict[str, dict[str, Any]]:
    """The built-in types by API version and name (`bonny_dev.crd.builtin`)."""
    text = files(__package__).joinpath("builtin_schemas.json").read_bytes()
    types: dict[str, dict[str, Any]] = msgspec.json.decode(text)
    return types
