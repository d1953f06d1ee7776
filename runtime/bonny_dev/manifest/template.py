"""Template: reads an object of the manifest from `objects/*.yaml`, and fills in the values of the operator."""

from __future__ import annotations

from importlib.resources import files
from string import Template
from typing import cast

import yaml

from bonny.operator import Operator
from bonny.resource import Resource


def read_object(name: str, operator: Operator, namespace: str, **values: object) -> Resource:
    """The object in the file `name`.yaml, for an operator that is deployed to `namespace`."""
    text = files(__package__).joinpath("objects", f"{name}.yaml").read_text(encoding="utf-8")
    filled = Template(text).substitute(name=operator.name, namespace=namespace, **values)
    return cast("Resource", yaml.safe_load(filled))
