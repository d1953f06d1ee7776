"""Declaring: a task is a function, and its options are the parameters, each with its help beside its type.

    @task()
    def greet(c: Context, name: Annotated[str, "whom to greet"], loud: Annotated[bool, "in capitals"] = False) -> None:

You need it to declare a task: use its `task` instead of invoke's. A parameter whose type is a dataclass stands for its
fields: the task has an option for each, and the function gets them as one value, which it can hand on.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import Annotated, Any, TypeAlias, cast, get_origin

import invoke.tasks
from invoke.exceptions import Exit

from .failure import in_one_sentence

Body: TypeAlias = Callable[..., int | None]


def task(**options: Any) -> Callable[[Body], invoke.tasks.Task[Any]]:
    """As `invoke.task`; a function may also return the exit code, and its errors are shown in one sentence."""

    def decorated(body: Body) -> invoke.tasks.Task[Any]:
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
        return cast("invoke.tasks.Task[Any]", invoke.tasks.task(run, help=texts, **options))

    return decorated


def _flat(function: Callable[..., Any]) -> Iterator[inspect.Parameter]:
    """The parameters of a task, with the fields of each dataclass in its place."""
    for each in inspect.signature(function, eval_str=True).parameters.values():
        if is_dataclass(each.annotation):
            yield from _flat(cast("type", each.annotation))
        else:
            yield each.replace(kind=inspect.Parameter.POSITIONAL_OR_KEYWORD)
