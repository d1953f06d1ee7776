"""Reading: typed values from the parts of an object, by the rules of the API server.

The model reads every object that the API server accepts: types are strict, enumerations and times are strings, and null
means absent unless the field is nullable.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from difflib import get_close_matches
from functools import cache, reduce
from itertools import islice
from typing import Any, Final, TypeVar

import msgspec
from pydantic import BaseModel, ValidationError
from pydantic_core import SchemaValidator

from ..errors import InvalidObject
from ..resource import printable
from .stored import as_stored, types_of

M = TypeVar("M", bound=BaseModel)
# A list of 1 MiB with wrong items makes errors of hundreds of MiB. Of larger parts, only the first error in each list
# or mapping is collected.
LARGE_BYTES: Final = 16 * 1024
_MANY: Final = ("list", "dict", "set", "frozenset", "tuple")
# A text with more errors than these fits no status and no log.
MOST_NAMED: Final = 100
LONGEST_KEY: Final = 253  # of names in Kubernetes
# Their texts quote the value: errors that functions of Python raise, for example `ipaddress`, and one of pydantic.
_QUOTING: Final = ("value_error", "assertion_error", "union_tag_invalid")


def read(model: type[M], data: Mapping[str, Any] | None, *, where: str) -> M:
    """Read decoded JSON, None as an empty object; `where` is its path, such as `spec`.

    Raises: `InvalidObject` naming the fields, never their content.
    """
    plain = {} if data is None else data
    encoded = msgspec.json.encode(plain)
    if b"null" not in encoded:
        # If it fails, it may be in a form that the API server normalizes: 1.0 for 1, and nulls.
        with suppress(ValidationError):
            return _validated(model, encoded)
    try:
        return _validated(model, msgspec.json.encode(as_stored(plain, types_of(model), prune=False)))
    except ValidationError as error:
        raise InvalidObject(sentence(_problems(error, where))) from None


def _validated(model: type[M], encoded: bytes) -> M:
    if len(encoded) > LARGE_BYTES:
        _failing_fast(model).validate_json(encoded)
    return model.model_validate_json(encoded)


class _Data:
    """In place of the classes of models: pydantic would use the validators that these have already."""


@cache
def _failing_fast(model: type[BaseModel]) -> SchemaValidator:
    """A validator that ends each list and mapping at its first error."""
    model.model_rebuild()  # its types may have been defined further down in the module
    return SchemaValidator(_with_fail_fast(model.__pydantic_core_schema__))


def _with_fail_fast(schema: Any) -> Any:
    if isinstance(schema, list | tuple):
        return type(schema)(map(_with_fail_fast, schema))
    if not isinstance(schema, dict):
        return schema
    kind = schema.get("type")
    if kind == "default":
        return schema | {"schema": _with_fail_fast(schema["schema"])}  # its default is a value of the user's
    made = {key: _with_fail_fast(each) for key, each in schema.items()}
    if kind == "function-after":
        made["function"] = {"type": "no-info", "function": lambda data: data}  # the function expects a model
    if kind == "model":
        made |= {"cls": _Data, "custom_init": False}
        made.pop("post_init", None)
    return made | ({"fail_fast": True} if kind in _MANY else {})


def _problems(error: ValidationError, where: str) -> Iterator[str]:
    for problem in error.errors(include_url=False, include_input=False):
        text = problem["msg"]
        if problem["type"] in _QUOTING:
            cause = problem["ctx"].get("error")
            text = f"Input is not valid ({type(cause).__name__})" if cause else "Input is not valid"
        yield f"{reduce(path_to, problem['loc'], where)}: {text}"


def path_to(where: str, part: str | int) -> str:
    """The path of a field or an item in `where`. A key of a map may be of any length, and is repeated for each field
    in it."""
    return f"{where}[{part}]" if isinstance(part, int) else f"{where}.{printable(part[:LONGEST_KEY])}"


def sentence(errors: Iterable[str]) -> str:
    """The text of an `InvalidObject` with these errors, of which `MOST_NAMED` are named and looked for."""
    named = list(islice(errors, MOST_NAMED + 1))
    more = [f"more fields are wrong than these {MOST_NAMED}"] * (len(named) > MOST_NAMED)
    return "; ".join([*named[:MOST_NAMED], *more])


def unknown(name: str, names: Iterable[str]) -> str:
    """The text about a field that is not one of `names`."""
    meant = get_close_matches(name[:LONGEST_KEY], names, n=1)
    return f"unknown field: did you mean {meant[0]}?" if meant else "unknown field"
