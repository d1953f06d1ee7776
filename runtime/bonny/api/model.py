"""Model: the pydantic base class of everything that has a schema.

You need it for nested objects (`class Port(Model)`). `Spec` and `Status` are models, too.

- Attributes are snake_case in Python and camelCase on the wire (`max_size` is `maxSize`). Another wire name is written
  `cluster_ip: Annotated[str | None, Field(alias="clusterIP")] = None`; with `= Field(alias=...)` type checkers take the
  wire name for that of the argument. A trailing underscore frees a Python keyword (`class_` is `class`).
- Types are strict: `"5"` is not a number. Unknown fields are ignored here and pruned by the API server.
- The docstring of a class, and the one below an attribute, become descriptions.
- Rules over several fields are written in the class line: `class Range(Model, rules=(Rule(...),))`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler
from pydantic_core import CoreSchema

from ..annotations import annotations_of
from ..errors import OptionError
from ..naming import camel_case
from .patterns import match_as_the_server
from .rules import Rule


class Model(BaseModel):
    """An object with typed fields. Derive nested objects from it; its docstring becomes their description."""

    model_config = ConfigDict(
        alias_generator=camel_case,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
        strict=True,
        extra="ignore",
        use_attribute_docstrings=True,
        hide_input_in_errors=True,  # what a handler logs or raises must not quote a secret
    )

    __rules__: ClassVar[tuple[Rule, ...]] = ()

    def __init_subclass__(cls, *, rules: tuple[Rule, ...] = (), **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        for name, annotation in annotations_of(cls).items():
            if name[0] != "_" and hasattr(Model, name) and "ClassVar" not in str(annotation):
                raise OptionError(
                    f"class {cls.__qualname__} in {cls.__module__}: every model has {name!r} already: call the field "
                    f"{name}_, which is {camel_case(name)} on the wire"
                )
        inherited = [rule for base in reversed(cls.__bases__) for rule in getattr(base, "__rules__", ())]
        cls.__rules__ = tuple(dict.fromkeys((*inherited, *rules)))

    def __len__(self) -> int:
        """The number of fields that were given, for `Field(min_length=1)`; a model without any is true, too."""
        return len(self.model_fields_set)

    def __bool__(self) -> bool:
        return True

    @classmethod
    def __get_pydantic_core_schema__(cls, source: type[BaseModel], handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        match_as_the_server(handler.resolve_ref_schema(schema), f"class {cls.__qualname__} in {cls.__module__}")
        return schema
