"""Model: the pydantic base of everything that has a schema.

You need it for nested objects (`class Port(Model)`); `Spec` and `Status` are models, too.
You do not need it to declare a kind: see `bonny.api.version`.
Elsewhere: the schema made from a model (`schema`), objects read with a model (`reading`).

- Attributes are snake_case in Python and camelCase on the wire (`max_size` is `maxSize`); `Field(alias="clusterIP")`
  names another wire name, and a trailing underscore frees a Python keyword (`class_` is `class`).
- Types are strict: `"5"` is not a number. Unknown fields are ignored here and pruned by the API server.
- The docstring of a class, and the one below an attribute, become descriptions.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from ..naming import camel_case

__all__ = ["Model"]


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
    )
