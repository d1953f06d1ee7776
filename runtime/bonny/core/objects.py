"""Objects as the core sees them: decoded metadata beside undecoded bytes.

Decoding only the metadata takes 5 us and 1.9 KiB an object, decoding everything 30 us and 30 KiB. The rest of an object
is decoded when a handler needs it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from itertools import chain
from typing import Any, Final, TypeVar, overload

import msgspec

from ..errors import InvalidObject
from ..resource import Key

# Errors of decoding. A RecursionError that `_lenient` leaves comes from events inside of events.
UNREADABLE: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
# The API server accepts 10,000 levels, and since Python 3.12 decoders do, too. Functions in Python, such as handlers,
# recurse about 1,000 times, minus the levels of the current stack.
DEEPEST: Final = 400
# Stands for what is nested too deeply. The decoder skips it, so that metadata and other objects stay readable, and
# refuses to decode it, so that a part is not taken for the whole. The API server accepts no such number.
HOLE: Final = b"1e999"
# A truncated string is a token, too; otherwise its end would be searched for from each quote in it.
_TOKENS: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[\]{}]', re.DOTALL)
# The text up to a surrogate without its other half, which the API server keeps in a RawExtension, and that surrogate.
# The text is taken at once: a call for each escape takes several times as long.
_LONE: Final = re.compile(rb"(?is)((?:[^\\]++|\\(?:ud[89ab]..\\ud[c-f]..|(?!ud[89a-f]).))*+)(\\ud[89a-f]..)?")
# After the colon follows the text of the webhook, which may quote the object.
_CONVERSION: Final = re.compile(r"(conversion webhook for [^:]{1,512} failed): .*", re.DOTALL)
# A refusal repeats values of megabytes. No reader of errors looks at more than this.
LONGEST_MESSAGE: Final = 16 * 1024
# An unsigned 64-bit number has 20 digits; a longer one is not a version, and int() refuses more than 4,300 digits.
VERSION_DIGITS: Final = 20


T = TypeVar("T")


class OwnerRef(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """One entry of metadata.ownerReferences."""

    kind: str
    name: str
    uid: str
    api_version: str = ""


class Meta(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """The parts of an object's metadata that decisions use."""

    name: str = ""
    """Empty only in bookmarks, whose object has only a version."""

    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    """0 where the server keeps none, for example ConfigMaps."""

    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerRef, ...] = ()


class Item(msgspec.Struct, frozen=True, gc=False):
    """One object: its metadata and its JSON as the server sent it."""

    meta: Meta
    raw: bytes

    @property
    def key(self) -> Key:
        """Namespace and name."""
        return Key(self.meta.namespace, self.meta.name)

    @property
    def version(self) -> int:
        """`metadata.resourceVersion`."""
        return version_number(self.meta.resource_version)

    def decode(self) -> dict[str, Any]:
        """The whole object as a new mapping, which the caller may change.

        Raises: `InvalidObject` if it is nested too deeply.
        """
        return decode_whole(self.raw, str(self.key))


class Objects(Sequence[dict[str, Any]]):
    """Objects of one kind, decoded one by one when they are read; each time a new mapping, which the caller may change.

    Raises: on reading, `InvalidObject` for an object that is nested too deeply.
    """

    def __init__(self, gvk: tuple[str, str], items: Sequence[Item]) -> None:
        self._gvk = gvk
        self._items = items

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, at: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, at: slice) -> Objects: ...
    def __getitem__(self, at: int | slice) -> dict[str, Any] | Objects:
        if isinstance(at, slice):
            return Objects(self._gvk, self._items[at])
        # Items of a list have no type, and metadata-only objects have the type PartialObjectMetadata.
        api_version, kind = self._gvk
        return {**self._items[at].decode(), "apiVersion": api_version, "kind": kind}


class Page(msgspec.Struct, frozen=True):
    """One page of a list."""

    items: tuple[Item, ...]
    version: str
    continue_token: str


class Cause(msgspec.Struct, frozen=True):
    """One detail of a failure."""

    reason: str = ""
    """Machine-readable: `NamespaceTerminating`."""

    field: str = ""
    message: str = ""
    """The server's text, which may quote the object."""


class Failure(msgspec.Struct, frozen=True):
    """The content of a Status object, or the equivalent where the server sent none."""

    code: int = 0
    reason: str = ""
    message: str = ""
    retry_after: float | None = None
    causes: tuple[Cause, ...] = ()


class _Envelope(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _HasMeta(msgspec.Struct, rename="camel"):
    metadata: Meta
    api_version: str = ""
    kind: str = ""


class _ListMeta(msgspec.Struct, rename={"resource_version": "resourceVersion", "continue_token": "continue"}):
    resource_version: str = ""
    continue_token: str = ""


class _ListBody(msgspec.Struct):
    metadata: _ListMeta
    # Go encodes some empty lists as null. No default: a document without items is not a list, and treating it as an
    # empty one would make every object look deleted.
    items: list[msgspec.Raw] | None


class _Details(msgspec.Struct, rename="camel"):
    retry_after_seconds: float | None = None
    causes: tuple[Cause, ...] | None = None


class _StatusBody(msgspec.Struct):
    code: int = 0
    reason: str = ""
    message: str = ""
    details: _Details | None = None


_whole = msgspec.json.Decoder(dict[str, Any])
_envelope = msgspec.json.Decoder(_Envelope)
_has_meta = msgspec.json.Decoder(_HasMeta)
_list = msgspec.json.Decoder(_ListBody)
_status = msgspec.json.Decoder(_StatusBody)


def _lenient(decoder: msgspec.json.Decoder[T], raw: bytes) -> T:
    """Decode `raw`. Where that fails: with a `HOLE` for what is nested too deeply, and U+FFFD for invalid Unicode, as
    in Go."""
    try:
        return decoder.decode(raw)
    except UNREADABLE:
        valid = raw.decode("utf-8", "replace").encode()
        return decoder.decode(flattened(_LONE.sub(lambda part: part[1] + (rb"\ufffd" if part[2] else b""), valid)))


def flattened(raw: bytes, hole: bytes = HOLE) -> bytes:
    """`raw` with a `hole` for each mapping and list that is nested deeper than `DEEPEST`."""
    parts: list[bytes] = []
    depth = kept = 0
    for token in _TOKENS.finditer(raw):
        match token[0]:
            case b"{" | b"[":
                depth += 1
                if depth == DEEPEST + 1:
                    parts += raw[kept : token.start()], hole
            case b"}" | b"]":
                depth -= 1
                if depth == DEEPEST:
                    kept = token.end()
    return b"".join([*parts, raw[kept:]])


def decode_whole(raw: bytes, name: str) -> dict[str, Any]:
    """Decode the whole object `name`.

    Raises: `InvalidObject` if it is nested deeper than `DEEPEST` levels; one of `UNREADABLE` if it is not an object.
    """
    try:
        decoded = _lenient(_whole, raw)
        # Most objects have fewer mappings and lists than `DEEPEST`, and counting them is cheap beside decoding.
        deep = raw.count(b"{") + raw.count(b"[") > DEEPEST and _is_deep(decoded)
    except msgspec.ValidationError:  # a hole, or another type
        deep = raw.lstrip().startswith(b"{")
        if not deep:
            raise
    if deep:
        raise InvalidObject(f"{name} is nested deeper than {DEEPEST} levels: make it flatter")
    return decoded


def _is_deep(decoded: dict[str, Any]) -> bool:
    """Whether mappings and lists are nested deeper than `DEEPEST`."""
    level: list[Any] = [decoded]
    for _ in range(DEEPEST):
        values = chain.from_iterable(each.values() if type(each) is dict else each for each in level)
        level = [value for value in values if type(value) in {dict, list}]
    return bool(level)


def decode_item(raw: bytes, *, of: tuple[str, str] | None = None) -> Item:
    """Decode one object.

    Raises: one of `UNREADABLE` if `raw` is not an object with a name, or not `of` this API version and kind.
    """
    decoded = _has_meta.decode(raw)
    if of is not None and (decoded.api_version, decoded.kind) != of:
        raise msgspec.ValidationError(f"Object is {decoded.api_version} {decoded.kind}, not {' '.join(of)}")
    # All objects of a namespace share one string.
    msgspec.structs.force_setattr(decoded.metadata, "namespace", sys.intern(decoded.metadata.namespace))
    if not decoded.metadata.name:
        raise msgspec.ValidationError("Object has no name - at `$.metadata`")
    return Item(decoded.metadata, raw)


def decode_bookmark(raw: bytes) -> Meta:
    """The metadata of a bookmark: only a version. Raises: one of `UNREADABLE`."""
    return _has_meta.decode(raw).metadata


def decode_event(line: bytes) -> tuple[str, bytes]:
    """Split a watch line into its type and the bytes of its object. Raises: one of `UNREADABLE`."""
    envelope = _lenient(_envelope, line)
    return envelope.type, bytes(envelope.object)


# The remedy where a list, or the answer to a watch, shows that there can be no watch.
UNWATCHED: Final = (
    "an API that computes its objects when they are read, such as metrics.k8s.io, cannot be watched: read it with "
    "`axn.client.get`, and again after `axn.requeue_after`"
)


def decode_page(body: bytes) -> Page:
    """Decode a page of a list. Raises: one of `UNREADABLE`, also if a watch could not continue from it."""
    page = _lenient(_list, body)
    if not page.metadata.resource_version:
        raise msgspec.ValidationError(f"it has no resourceVersion; {UNWATCHED}")
    # bytes() copies each item, so that one object that stays does not keep the whole page in memory.
    items = tuple(decode_item(bytes(raw)) for raw in page.items or ())
    return Page(items, page.metadata.resource_version, page.metadata.continue_token)


def decode_failure(status: int, body: bytes, retry_after: float | None = None) -> Failure:
    """Read a Status, or make one from text, HTML or an empty body. Never raises.

    `status` is the HTTP status, 0 for an event of a watch. It takes precedence over the body: a proxy's error page can
    be JSON, too.
    """
    try:
        decoded = _status.decode(body)
    except UNREADABLE:
        # 300 characters are enough to recognise a proxy's error page, and few enough for a log line.
        return Failure(status, "", body[:300].decode("utf-8", "replace").strip(), retry_after)
    details = decoded.details or _Details()
    retry_after = details.retry_after_seconds if retry_after is None else retry_after
    message = _CONVERSION.sub(r"\1", decoded.message[:LONGEST_MESSAGE])
    return Failure(status or decoded.code, decoded.reason, message, retry_after, details.causes or ())


def version_number(version: str) -> int:
    """The order of a resourceVersion within one resource; 0 when the server's versions are not numbers.

    Kubernetes promises comparable integers since 1.35 (KEP-5504); etcd-backed servers always sent them.
    """
    return int(version) if version.isdecimal() and len(version) <= VERSION_DIGITS else 0
