"""Reading: typed values from the parts of an object, by the rules of the API server.

You need it to turn a stored object into a `Spec` or `Status`.
You do not need it in handlers: `axn.spec` is typed.

The model reads every object that the API server accepts: types are strict, enumerations and times are strings, and null
means absent unless the field is nullable.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import reduce
from typing import Any, Final, TypeVar

import msgspec
from pydantic import BaseModel, ValidationError

from ..errors import InvalidObject, OptionError
from .schema import structural
from .validation import as_stored, path_to, problems, sentence

M = TypeVar("M", bound=BaseModel)
# A list of 1 MiB with wrong items, or a long key around wrong values, makes errors of hundreds of MiB.
LARGE_BYTES: Final = 16 * 1024
# Their texts quote the value: errors that functions of Python raise, for example `ipaddress`, and one of pydantic.
_QUOTING: Final = ("value_error", "assertion_error", "union_tag_invalid")


def read(model: type[M], data: Mapping[str, Any] | None, *, where: str) -> M:
    """Read decoded JSON, None as an empty object; `where` is its path, such as `spec`.

    Raises: `InvalidObject` naming the fields, never their content.
    """
    plain = {} if data is None else data
    try:
        encoded = msgspec.json.encode(plain)
        if len(encoded) > LARGE_BYTES:
            _check(model, plain, where)
        if b"null" not in encoded:
            return model.model_validate_json(encoded)
    except ValidationError:
        pass  # it may be in a form that the API server normalizes: 1.0 for 1, and nulls
    try:
        stored = as_stored(plain, structural(model, where=where))
    except OptionError:
        stored = plain  # the model describes a kind that has no definition here, so it may have any types
    try:
        return model.model_validate_json(msgspec.json.encode(stored))
    except ValidationError as error:
        raise InvalidObject(sentence(_problems(error, where))) from None


def _check(model: type[BaseModel], plain: Mapping[str, Any], where: str) -> None:
    """Find the first errors of a large part: pydantic collects all, each with the whole keys of its path."""
    with suppress(OptionError):  # as above
        schema = structural(model, where=where)
        if errors := sentence(problems(as_stored(plain, schema), schema, where)):
            raise InvalidObject(errors)


def _problems(error: ValidationError, where: str) -> Iterator[str]:
    for problem in error.errors(include_url=False, include_input=False):
        text = problem["msg"]
        if problem["type"] in _QUOTING:
            cause = problem["ctx"].get("error")
            text = f"Input is not valid ({type(cause).__name__})" if cause else "Input is not valid"
        yield f"{reduce(path_to, problem['loc'], where)}: {text}"
