"""What the console and `top` show of streams, where an operator has hundreds of them."""

from __future__ import annotations

from typing import Any

from bonny_dev.console.board import by_kind


def stream(name: str, *, error: str | None = None, **values: Any) -> dict[str, Any]:
    usual = {"objects": 2, "synced": error is None, "silent": 1.0, "opened": 60.0, "failing": None, "errors": {}}
    return {**usual, "name": name, "error": error, **values}


def test_a_few_streams_are_shown_one_by_one() -> None:
    few = [stream("lamps in a"), stream("lamps in b"), stream("configmaps")]

    assert by_kind(few) == few


def test_hundreds_of_streams_are_one_for_each_kind_and_the_first_that_do_not_work() -> None:
    many = [stream(f"lamps in n{number}", silent=float(number)) for number in range(300)]
    many += [
        stream(f"lamps in f{number}", error="forbidden", failing=9.0, errors={"forbidden": 1}) for number in (1, 2)
    ]
    other = [stream(f"configmaps in n{number}", opened=None if number == 7 else 5.0) for number in range(300)]

    lamps, *failing, maps = by_kind([*many, *other])

    assert (lamps["name"], lamps["objects"], lamps["synced"]) == ("lamps in 302 namespaces", 604, False)
    assert (lamps["error"], lamps["failing"], lamps["errors"]) == ("2 of 302 fail", 9.0, {"forbidden": 2})
    assert (lamps["silent"], lamps["opened"]) == (299.0, 60.0)
    assert [each["name"] for each in failing] == ["lamps in f1", "lamps in f2"]
    assert (maps["name"], maps["error"], maps["synced"], maps["opened"]) == (
        "configmaps in 300 namespaces",
        None,
        True,
        None,
    )
