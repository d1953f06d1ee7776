"""Annotations of classes that users write: kept as text, or evaluated on demand by Python 3.14."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest

from bonny.api import Version
from bonny.errors import OptionError
from bonny_dev.crd import schema_of
from bonny_dev.crd.types import check_types

NAME = "written_by_a_user"
IMPORTS = """
from typing import TYPE_CHECKING, ClassVar
from bonny.api import Model, Spec, Status, Version
from bonny.scheduler import Scheduler
from bonny_dev.crd import schema_of

if TYPE_CHECKING:
    from bonny.scheduler import NodeView, PodView
"""
# Each class names what is defined below it.
GADGET = """
class Gadget(Version):
    kind = "Gadget"
    version = "v1"
    spec: GadgetSpec
    LIMIT: ClassVar[Price] = 3

class GadgetSpec(Spec):
    part: Part | None = None
    copy: ClassVar[Price] = 3

class Part(Model):
    size_in_cm: Price

Price = {price}
"""
TAKEN = """
class GadgetSpec(Spec):
    copy: str
"""
CHECK = """
def enough(pod: PodView, node: NodeView) -> bool:
    return True

class Choosing(Scheduler):
    name = "choosing"
    check = enough
"""

Written = Callable[[str], ModuleType]


@pytest.fixture(
    params=[
        pytest.param("from __future__ import annotations\n", id="text"),
        pytest.param("", id="on demand", marks=pytest.mark.skipif(sys.version_info < (3, 14), reason="Python 3.14")),
    ]
)
def written(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Written]:
    """Imports a module that a user could have written."""
    monkeypatch.syspath_prepend(tmp_path)

    def imported(text: str) -> ModuleType:
        (tmp_path / f"{NAME}.py").write_text(request.param + IMPORTS + text, "utf-8")
        importlib.invalidate_caches()
        return importlib.import_module(NAME)

    yield imported
    sys.modules.pop(NAME, None)


def test_types_may_be_defined_further_down(written: Written) -> None:
    """Regression: the first look at a schema said that the field is read and written by different names."""
    gadget: type[Version] = written(GADGET.format(price="int")).Gadget

    part = schema_of(gadget)["properties"]["spec"]["properties"]["part"]

    assert part["properties"] == {"sizeInCm": {"type": "integer"}}
    assert gadget.spec_of({"spec": {"part": {"sizeInCm": 3}}}).part.size_in_cm == 3


def test_types_that_are_defined_further_down_are_checked(written: Written) -> None:
    with pytest.raises(OptionError, match=r"spec\.part\.sizeInCm: bytes has another form than values in Kubernetes"):
        check_types(written(GADGET.format(price="bytes")).Gadget)


def test_a_name_that_every_model_has_is_refused(written: Written) -> None:
    """Regression: Python 3.14 keeps no annotations in the namespace of the class."""
    with pytest.raises(OptionError, match="every model has 'copy' already: call the field copy_"):
        written(TAKEN)


def test_types_may_be_imported_for_type_checkers_alone(written: Written) -> None:
    assert written(CHECK).Choosing.check(None, None)
