"""Objects, pages and refusals as the core reads them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bonny.core.objects import (
    UNREADABLE,
    Cause,
    Failure,
    decode_bookmark,
    decode_event,
    decode_failure,
    decode_item,
    decode_page,
    decode_whole,
    version_number,
)
from bonny.errors import InvalidObject
from bonny.resource import Key
from tests.support.core import line, page, status, thing

encode = msgspec.json.encode
# Python 3.11 decodes about 1,000 levels; 3.12 and 3.13 decode 10,000, as the API server does; 3.14 decodes more.
TOO_DEEP = b'{"metadata":{"name":"w1","resourceVersion":"1"},"spec":' + b'{"a":' * 50_000 + b"1" + b"}" * 50_001
# A page that is not Unicode is cut on each Python, even where the decoder could skip what is too deep.
CUT_PAGE = b'{"metadata":{"resourceVersion":"5","continue":"\xff"},"items":['


def test_an_object_keeps_its_bytes_and_decodes_anew_each_time() -> None:
    raw = msgspec.json.encode(thing(spec={"size": 3}))
    item = decode_item(raw)

    first = item.decode()
    first["spec"]["size"] = 4

    assert (item.raw, item.decode()["spec"]) == (raw, {"size": 3})


def test_the_key_of_a_cluster_scoped_object_has_no_namespace() -> None:
    assert decode_item(msgspec.json.encode(thing("n1", namespace=""))).key == Key("", "n1")


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b'{"metadata":null}',
        b'{"metadata":{}}',
        b'{"metadata":{"name":"\xff"}}',
        b'{"metadata":{"name":"w1"}',
    ],
    ids=["empty", "null", "list", "no metadata", "null metadata", "no name", "not UTF-8", "cut"],
)
def test_what_is_no_object_is_refused_in_an_expected_way(raw: bytes) -> None:
    with pytest.raises(UNREADABLE):
        decode_item(raw)


def test_what_is_nested_too_deeply_hides_neither_its_object_nor_its_page() -> None:
    """Regression: one object that nobody can decode made a whole kind unreadable, for ever."""
    good = msgspec.json.encode(thing("good", note='a "{[" in a string \\'))
    page = decode_page(b'{"metadata":{"resourceVersion":"5"},"items":[' + TOO_DEEP + b"," + good + b"]}")

    deep, other = page.items
    assert (deep.meta.name, deep.meta.resource_version) == ("w1", "1")
    with pytest.raises(InvalidObject, match="w1 is nested deeper than 400 levels"):
        deep.decode()
    assert other.decode() == thing("good", note='a "{[" in a string \\')


MARKERS = ("1e999", "{1e999}", "[1e999]", "{\t}", "\t", "\\ud800", "\\\\ud800")


@pytest.mark.parametrize("text", MARKERS)
def test_no_text_of_an_object_makes_it_too_deep(text: str) -> None:
    """Regression: the text that once marked what is too deep, as an annotation of a pod, stopped a scheduler."""
    texts = thing("texts", data={"key": text, text: "value"})
    beside = decode_page(CUT_PAGE + TOO_DEEP + b"," + encode(texts) + b"]}")

    assert decode_item(encode(texts)).decode() == texts
    deep, item = beside.items
    assert item.decode() == texts
    with pytest.raises(InvalidObject):
        deep.decode()


@pytest.mark.parametrize("levels", [399, 1_500, 9_000, 50_000])
@pytest.mark.parametrize("shape", ["map", "list"])
@pytest.mark.parametrize("watched", [False, True])
def test_an_object_that_is_too_deep_shows_its_metadata_and_nothing_else(watched: bool, shape: str, levels: int) -> None:
    """A part of it could be taken for the whole, and children be deleted because of what is absent.

    Regression: Python 3.12 and later decoded it with 9,000 levels, where each handler met a RecursionError.
    """
    opening, closing = (b'{"a":', b"}") if shape == "map" else (b"[", b"]")
    nested = opening * levels + b"1" + closing * levels
    raw = b'{"metadata":{"name":"w1","finalizers":["f"]},"spec":{"bucket":"b1","free":' + nested + b"}}"
    if watched:
        item = decode_item(decode_event(b'{"type":"ADDED","object":' + raw + b"}")[1])
    else:
        (item,) = decode_page(b'{"metadata":{"resourceVersion":"5"},"items":[' + raw + b"]}").items

    assert (item.meta.name, item.meta.finalizers) == ("w1", ("f",))
    for _ in range(2):
        with pytest.raises(InvalidObject, match="w1 is nested deeper than 400 levels: make it flatter"):
            item.decode()
    with pytest.raises(InvalidObject, match="widgets w1 is nested deeper than 400 levels: make it flatter"):
        decode_whole(raw, "widgets w1")


@pytest.mark.parametrize("raw", [b"", b"[]", b"null", b"<html>", b'"{', b'{"a":'], ids=repr)
def test_what_is_not_an_object_is_not_called_too_deep(raw: bytes) -> None:
    with pytest.raises(UNREADABLE):
        decode_whole(raw, "widgets w1")


def test_an_object_of_400_levels_is_decoded_whole() -> None:
    nested = b'{"metadata":{"name":"w1"},"spec":' + b'{"a":' * 398 + b'["{[{"]' + b"}" * 399
    assert msgspec.json.encode(decode_item(nested).decode()) == nested


@pytest.mark.parametrize(
    ("text", "read"),
    [
        (rb"\ud800", "\ufffd"),
        (rb"\udc00\ud83d", "\ufffd\ufffd"),
        (rb"\ud83d\ude00 \u2028", "\U0001f600 \u2028"),
        (rb"\\ud800 \"\\", '\\ud800 "\\'),
        (b"a\xff\xfeb", "a\ufffd\ufffdb"),
        (rb"\u0000", "\0"),
    ],
    ids=["one half", "wrong order", "a pair", "escaped", "not UTF-8", "NUL"],
)
@pytest.mark.parametrize("watched", [False, True])
def test_text_that_is_not_unicode_hides_neither_its_object_nor_its_page(text: bytes, read: str, watched: bool) -> None:
    """The API server hands on the text of a RawExtension as it was written. A client in Go reads U+FFFD.

    Regression: one ControllerRevision with half a surrogate made all of them unreadable for every list and watch.
    """
    raw = b'{"metadata":{"name":"w1"},"data":{"text":"' + text + b'"}}'
    good = thing("good", note="\U0001f600")
    if watched:
        item = decode_item(decode_event(b'{"type":"ADDED","object":' + raw + b"}")[1])
    else:
        listed = b'{"metadata":{"resourceVersion":"5"},"items":[' + raw + b"," + encode(good) + b"]}"
        item, other = decode_page(listed).items
        assert other.decode() == good

    assert item.decode()["data"]["text"] == read


def test_a_line_that_is_cut_off_within_a_long_text_is_refused_at_once() -> None:
    """For minutes, where the end of a text is searched for again from each quote in it."""
    with pytest.raises(UNREADABLE):
        decode_event(b'{"type":"ADDED","object":{"metadata":{"name":"w1"},"data":"' + rb"\"" * 200_000)


def test_an_event_is_split_without_decoding_its_object() -> None:
    kind, raw = decode_event(b'{"object": {"metadata": 7}, "type": "ADDED", "more": []}')

    assert (kind, raw) == ("ADDED", b'{"metadata": 7}')


@pytest.mark.parametrize("data", [b"{}", b"no JSON", b'{"type":"ADDED"}', line("ADDED", {})[:-1]])
def test_a_line_that_is_no_event_is_refused_in_an_expected_way(data: bytes) -> None:
    with pytest.raises(UNREADABLE):
        decode_event(data)


def test_a_bookmark_carries_only_a_version() -> None:
    carried = decode_bookmark(b'{"kind":"Pod","metadata":{"resourceVersion":"12","creationTimestamp":null}}')
    assert carried.resource_version == "12"


def test_a_page_gives_its_objects_version_and_token() -> None:
    read = decode_page(page(thing("a"), thing("b"), version=42, token="next"))

    assert ([item.key.name for item in read.items], read.version, read.continue_token) == (["a", "b"], "42", "next")


def test_an_empty_list_may_be_null() -> None:
    assert decode_page(b'{"metadata":{"resourceVersion":"1"},"items":null}').items == ()


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b'{"metadata":{}}',
        b'{"metadata":{"resourceVersion":"7"}}',
        b'{"metadata":{},"items":[]}',
        msgspec.json.encode(status(500, "InternalError")),
        b"<html>Sign in</html>",
        page(thing())[:-2],
    ],
    ids=["nothing", "metadata", "no items", "no version", "Status", "HTML", "cut"],
)
def test_a_document_that_is_no_list_is_never_taken_for_an_empty_one(body: bytes) -> None:
    """Regression: a Status or {"metadata":{}} with code 200 read as an empty list, and every object as deleted."""
    with pytest.raises(UNREADABLE):
        decode_page(body)


@given(body=st.binary(max_size=2000), code=st.integers(400, 599))
def test_any_body_of_a_refusal_can_be_read(body: bytes, code: int) -> None:
    failure = decode_failure(code, body)

    assert (failure.code, len(failure.message) <= 300) == (code, True)


@pytest.mark.parametrize(
    ("http", "body", "retry_after", "expected"),
    [
        (403, msgspec.json.encode(status(403, "Forbidden", "no")), None, Failure(403, "Forbidden", "no", None)),
        (0, msgspec.json.encode(status(410, "Expired", "old")), None, Failure(410, "Expired", "old", None)),
        (429, b"Too many requests\n", 1.0, Failure(429, "", "Too many requests", 1.0)),
        (429, msgspec.json.encode(status(429, retry_after=7)), None, Failure(429, "", "", 7.0)),
        (429, msgspec.json.encode(status(429, retry_after=7)), 3.0, Failure(429, "", "", 3.0)),
        (404, b"404 page not found\n", None, Failure(404, "", "404 page not found", None)),
        (502, b"<html>" + b"x" * 1000, None, Failure(502, "", "<html>" + "x" * 294, None)),
        (500, b'{"code":"404"}', None, Failure(500, "", '{"code":"404"}', None)),
        (500, b"", None, Failure(500, "", "", None)),
        (500, b"\xff\xfe", None, Failure(500, "", "��", None)),
        (500, b"[" * 100_000, None, Failure(500, "", "[" * 300, None)),
    ],
    ids=["Status", "event", "text", "body's wait", "header's wait", "404", "HTML", "typed", "empty", "bytes", "deep"],
)
def test_a_refusal_is_read_whatever_its_body_is(
    http: int, body: bytes, retry_after: float | None, expected: Failure
) -> None:
    assert decode_failure(http, body, retry_after) == expected


@pytest.mark.parametrize(
    ("details", "causes"),
    [
        (
            {"causes": [{"reason": "NamespaceTerminating", "message": "m", "field": "f"}, {}]},
            (Cause("NamespaceTerminating", "f", "m"), Cause()),
        ),
        ({"causes": None}, ()),
        ({}, ()),
    ],
)
def test_the_causes_of_a_refusal_are_read(details: dict[str, Any], causes: tuple[Cause, ...]) -> None:
    body = msgspec.json.encode({**status(403, "Forbidden"), "details": details})

    assert decode_failure(403, body) == Failure(403, "Forbidden", "", None, causes)


def test_of_a_conversion_that_failed_the_text_of_its_webhook_is_left_out() -> None:
    told = "conversion webhook for example.com/v2, Kind=Widget failed"
    body = msgspec.json.encode(status(500, "InternalError", f"{told}: spec.password hunter2\nis too short"))

    assert decode_failure(500, body).message == told


def test_the_status_of_the_answer_beats_what_its_body_claims() -> None:
    """Regression: a proxy's 503 with {"code": 404} read as "not found", on which objects are given up."""
    assert decode_failure(503, b'{"code": 404, "message": "no upstream"}').code == 503


@pytest.mark.parametrize(
    ("text", "number"),
    [("12", 12), ("18446744073709551615", 2**64 - 1), ("", 0), ("abc", 0), ("-1", 0), ("1.5", 0), ("9" * 5000, 0)],
)
def test_a_version_that_is_no_number_counts_as_none(text: str, number: int) -> None:
    assert version_number(text) == number
