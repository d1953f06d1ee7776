"""Lines out of a byte stream that is cut anywhere."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bonny.core import framing
from bonny.core.framing import Lines, LineTooLong

TEXTS = st.lists(
    st.text(st.characters(codec="utf-8", exclude_characters="\n"), min_size=1).filter(lambda text: text.strip())
)


@given(texts=TEXTS, cuts=st.lists(st.integers(0, 200)))
def test_where_a_stream_is_cut_changes_no_line(texts: list[str], cuts: list[int]) -> None:
    """Also inside a UTF-8 sequence, right before and right behind a line end."""
    stream = b"".join(text.encode() + b"\n" for text in texts)
    edges = [0, *sorted({min(cut, len(stream)) for cut in cuts}), len(stream)]
    lines = Lines()

    got = [line for start, end in pairwise(edges) for line in lines.feed(stream[start:end])]

    assert got == [text.encode() for text in texts]


def test_an_unfinished_line_is_kept_back() -> None:
    """A cut connection leaves half a line, which is no event."""
    lines = Lines()

    assert lines.feed(b'{"a": 1}\n{"b"') == [b'{"a": 1}']
    assert lines.feed(b"") == []
    assert lines.feed(b": 2}") == []
    assert lines.feed(b"\n") == [b'{"b": 2}']


def test_empty_lines_are_no_lines() -> None:
    assert Lines().feed(b"\n\r\n  \n{}\n\n") == [b"{}"]


def test_a_line_may_be_longer_than_any_buffer() -> None:
    lines = Lines()
    for _ in range(32):
        assert lines.feed(b"x" * 65_536) == []

    assert list(map(len, lines.feed(b"\n"))) == [32 * 65_536]


def test_a_line_without_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing, "LONGEST_LINE", 100)
    lines = Lines()
    lines.feed(b"a\n" + b"x" * 60)

    with pytest.raises(LineTooLong, match="longer than 100 bytes"):
        lines.feed(b"x" * 41)


def test_what_was_handed_out_does_not_count_towards_the_longest_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(framing, "LONGEST_LINE", 100)
    lines = Lines()
    for _ in range(10):
        lines.feed(b"x" * 60)
        assert lines.feed(b"\n") == [b"x" * 60]
