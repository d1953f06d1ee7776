"""Declaring: a task is a function, and its options are the parameters, each with its help beside its type.

    @task()
    def greet(c: Context, name: Annotated[str, "whom to greet"], loud: Annotated[bool, "in capitals"] = False) -> None:

You need it to declare a task: use its `task` instead of invoke's. A parameter whose type is a dataclass stands for its
fields: the task has an option for each, and the function gets them as one value, which it can hand on. An error of the
function is shown in one sentence, which is written where the error is raised: on stderr, with an exit code, and never
with a traceback.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Annotated, Any, TypeAlias, cast, get_origin

import invoke.tasks
from invoke.exceptions import Exit
from invoke.parser.argument import Argument
from invoke.tasks import Task

from bonny.errors import ApiError, UsageError

Body: TypeAlias = Callable[..., int | None]


def task(**options: Any) -> Callable[[Body], Task[Any]]:
    """As `invoke.task`; a function may also return the exit code, and its errors are shown in one sentence."""

    def decorated(body: Body) -> Task[Any]:
        declared = inspect.signature(body, eval_str=True).parameters.values()
        groups: dict[str, Any] = {each.name: each.annotation for each in declared if is_dataclass(each.annotation)}
        signature = inspect.Signature([*_flat(body)])

        @wraps(body)
        def run(*arguments: Any, **flags: Any) -> None:
            given = signature.bind(*arguments, **flags).arguments
            for name, group in groups.items():
                own = [field.name for field in fields(group) if field.name in given]
                given[name] = group(**{field: given.pop(field) for field in own})
            with in_one_sentence():
                if code := body(**given):
                    raise Exit(code=code)

        vars(run)["__signature__"] = signature
        explained = [each for each in signature.parameters.values() if get_origin(each.annotation) is Annotated]
        texts = {each.name: each.annotation.__metadata__[0] for each in explained}
        return cast("Task[Any]", invoke.tasks.task(run, help=texts, **options))

    return decorated


def _flat(function: Callable[..., Any]) -> Iterator[inspect.Parameter]:
    """The parameters of a task, with the fields of each dataclass in its place."""
    for each in inspect.signature(function, eval_str=True).parameters.values():
        if is_dataclass(each.annotation):
            yield from _flat(cast("type", each.annotation))
        else:
            yield each.replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD)


@contextmanager
def in_one_sentence() -> Iterator[None]:
    """Turn a `UsageError`, an `ApiError` or a package that is not installed into invoke's `Exit` with code 2."""
    try:
        yield
    except UsageError as error:
        raise Exit(f"{error}", code=2) from error
    except ApiError as error:
        from bonny.client.errors import log_text_of  # loaded by now: it made the error

        raise Exit(log_text_of(error), code=2) from error
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing in {"", "bonny", "bonny_dev"}:
            raise
        sentence = (
            f"{missing} is not installed here: run `uv sync`, or `pip install -e '.[dev]'`, and try again; if that "
            "does not help, add it to pyproject.toml, or correct its name"
        )
        raise Exit(sentence, code=2) from error


class FromCrd(Task[Any]):
    """A task that demands no positional argument where `--from-crd` is given: the definition names the kind.

    invoke itself demands every positional argument, or takes none of them by position.
    """

    instead = "from_crd"
    """The option."""

    def get_arguments(self, ignore_unknown_help: bool | None = None) -> list[Argument]:
        arguments = super().get_arguments(ignore_unknown_help)
        positional = [each for each in arguments if each.positional]
        return [_Instead(each, positional) if each.name == self.instead else each for each in arguments]


class OfAll(FromCrd):
    """A task that demands no positional argument where `--all` is given, alone or as `--all widgets`."""

    instead = "all"

    def get_arguments(self, ignore_unknown_help: bool | None = None) -> list[Argument]:
        arguments = super().get_arguments(ignore_unknown_help)
        return [_All(each, each.others) if isinstance(each, _Instead) else each for each in arguments]


class _Instead(Argument):
    """An option that gives the empty text to each of the `others` that has no value yet."""

    def __init__(self, option: Argument, others: Sequence[Argument]) -> None:
        super().__init__(
            names=option.names, kind=option.kind, default=option.default, help=option.help, attr_name=option.attr_name
        )
        self.others = others

    def set_value(self, value: Any, cast: bool = True) -> None:
        super().set_value(value, cast)
        self.fill()

    def fill(self) -> None:
        """Give the others the empty text."""
        for other in self.others:
            if not other.got_value:
                other.set_value("")
                other.raw_value = None  # so that it can still be given as an option


class _All(_Instead):
    """An option that may have a value: True without one."""

    def __init__(self, option: Argument, others: Sequence[Argument]) -> None:
        super().__init__(option, others)
        self.kind, self.optional = str, True

    @property
    def takes_value(self) -> bool:
        """Read as soon as invoke sees the option; it would take the next word for the missing argument else."""
        self.fill()
        return True
