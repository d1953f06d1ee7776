"""Positional: a task whose positional arguments can be replaced by an option.

You need it for `gen-controller --from-crd`, where the definition names the kind. invoke itself demands every positional
argument, or takes none of them by position.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from invoke.parser.argument import Argument
from invoke.tasks import Task


class FromCrd(Task[Any]):
    """A task that demands no positional argument where `--from-crd` is given."""

    def get_arguments(self, ignore_unknown_help: bool | None = None) -> list[Argument]:
        arguments = super().get_arguments(ignore_unknown_help)
        positional = [each for each in arguments if each.positional]
        return [_Instead(each, positional) if each.name == "from_crd" else each for each in arguments]


class _Instead(Argument):
    """An option that gives the empty text to each of the `others` that has no value yet."""

    def __init__(self, option: Argument, others: Sequence[Argument]) -> None:
        super().__init__(
            names=option.names, kind=option.kind, default=option.default, help=option.help, attr_name=option.attr_name
        )
        self.others = others

    def set_value(self, value: Any, cast: bool = True) -> None:
        super().set_value(value, cast)
        for other in self.others:
            if not other.got_value:
                other.set_value("")
                other.raw_value = None  # so that it can still be given as an option
