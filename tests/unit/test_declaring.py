"""Tasks are declared by their functions: an option for each parameter, and for each field of a dataclass."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import Annotated

import pytest
from invoke.collection import Collection
from invoke.context import Context
from invoke.exceptions import Exit
from invoke.program import Program

from bonny.errors import UsageError
from bonny_dev.tasks.declaring import task


@dataclass(frozen=True, kw_only=True)
class Parcel:
    """What to send, and how."""

    name: Annotated[str, "the name on it"]
    fragile: Annotated[bool, "handle with care"] = False
    stamps: Annotated[int, "how many to put on it"] = 1


@task()
def send(c: Context, parcel: Parcel, to: Annotated[str, "the address"] = "home") -> int:
    """Send a parcel."""
    if parcel.stamps < 0:
        raise UsageError(f"{parcel.stamps} stamps: put on one or more")
    print(parcel, to)
    return 0 if parcel.stamps else 3


def invoked(words: str) -> None:
    """Run invoke with a copy of the task, since a task hands out the help of its arguments once."""
    Program(namespace=Collection(deepcopy(send))).run(f"invoke {words}", exit=False)


def test_a_dataclass_stands_for_its_fields(capsys: pytest.CaptureFixture[str]) -> None:
    invoked("send lamp --fragile --stamps 2 --to Rome")

    assert capsys.readouterr().out == f"{Parcel(name='lamp', fragile=True, stamps=2)} Rome\n"


def test_help_beside_a_type_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    invoked("--help send")

    shown = capsys.readouterr().out
    assert all(text in shown for text in ("the name on it", "handle with care", "how many", "the address"))


def test_a_task_can_be_called_as_a_function(capsys: pytest.CaptureFixture[str]) -> None:
    send(Context(), "lamp", to="Rome")

    assert capsys.readouterr().out == f"{Parcel(name='lamp')} Rome\n"


@pytest.mark.parametrize(("stamps", "code"), [(0, 3), (-1, 2)])
def test_codes_and_errors_of_the_function_end_the_task(stamps: int, code: int) -> None:
    with pytest.raises(Exit) as raised:
        send(Context(), "lamp", stamps=stamps)

    assert raised.value.code == code
    assert raised.value.message == ("-1 stamps: put on one or more" if code == 2 else None)
