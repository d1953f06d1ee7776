"""Definitions: compares the CRDs of two releases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from bonny.resource import Resource

from .changes import Change
from .schemas import compare as compare_schemas


class Finding(NamedTuple):
    """A change of one kind; `version` is empty for what all its versions share."""

    kind: str
    version: str
    change: Change

    @property
    def name(self) -> str:
        """Its name in `accepted-breaks` of pyproject.toml: `Widget v1 spec.size`."""
        return " ".join(filter(None, (self.kind, self.version, self.change.path)))

    def __str__(self) -> str:
        return f"{self.name} {self.change.text}"


def compare(old: Iterable[Resource], new: Iterable[Resource]) -> Iterator[Finding]:
    """The changes from the CRDs `old` to the CRDs `new`."""
    after = {each["metadata"]["name"]: each for each in new}
    before = {each["metadata"]["name"]: each for each in old}
    for name, crd in before.items():
        kind = crd["spec"]["names"]["kind"]
        if name not in after:
            yield Finding(kind, "", Change("", f"is gone: nothing serves the stored objects of {name}"))
        else:
            yield from _shared(crd["spec"], after[name]["spec"])
            yield from _versions(crd["spec"], after[name]["spec"])
    for name in after.keys() - before.keys():
        yield Finding(after[name]["spec"]["names"]["kind"], "", Change("", "is new", breaks=False))


def _shared(old: Resource, new: Resource) -> Iterator[Finding]:
    kind = old["names"]["kind"]
    if old["scope"] != new["scope"]:
        yield Finding(kind, "", Change("", f"is {new['scope']}, and was {old['scope']}: that cannot be changed"))
    if kind != new["names"]["kind"]:
        text = f"is called {new['names']['kind']} now: clients do not find it"
        yield Finding(kind, "", Change("", text))
    if gone := sorted({*old["names"].get("shortNames", ())} - {*new["names"].get("shortNames", ())}):
        yield Finding(kind, "", Change("", f"no longer has the short name {', '.join(gone)}", breaks=False))


def _versions(old: Resource, new: Resource) -> Iterator[Finding]:
    kind = old["names"]["kind"]
    before, after = _by_name(old), _by_name(new)
    for name, version in before.items():
        now = after.get(name)
        if now is None or not now["served"]:
            if change := _unserved(version, gone=now is None):
                yield Finding(kind, name, change)
        else:
            yield from (Finding(kind, name, change) for change in _one(version, now))
        if version["storage"] and now is not None and not now["storage"]:
            text = f"is no longer the stored version: run `invoke migrate {kind}` after the release"
            yield Finding(kind, name, Change("", text, breaks=False))
    for name in after.keys() - before.keys():
        yield Finding(kind, name, Change("", "is new", breaks=False))


def _by_name(spec: Resource) -> Mapping[str, Resource]:
    return {each["name"]: each for each in spec["versions"]}


def _unserved(version: Resource, *, gone: bool) -> Change | None:
    """The change of a version that is no longer served."""
    state = "is gone" if gone else "is no longer served"
    if version["storage"]:
        return Change("", f"{state}, and objects are stored in it: store them in another version in a release before")
    if not version["served"]:
        return None
    if version.get("deprecated"):
        return Change("", f"{state}; it was deprecated", breaks=False)
    return Change("", f"{state}: clients use it; deprecate it in a release before")


def _one(old: Resource, new: Resource) -> Iterator[Change]:
    schemas = (each.get("schema", {}).get("openAPIV3Schema", {}) for each in (old, new))
    yield from compare_schemas(*schemas)
    for name in old.get("subresources", {}).keys() - new.get("subresources", {}).keys():
        yield Change("", f"no longer has the subresource {name}: clients write it")
    paths = ({each["jsonPath"] for each in version.get("selectableFields", ())} for version in (old, new))
    before, after = paths
    for path in sorted(before - after):
        yield Change("", f"can no longer be selected by {path}: clients do")
    if new.get("deprecated") and not old.get("deprecated"):
        yield Change("", "is deprecated", breaks=False)
