"""Controller: what is read from its brackets, and which classes are found; the ordinary ways are in `test_handling`."""

from __future__ import annotations

import importlib
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, TypeVar

import pytest

from bonny import Axn, Controller, Kind, Operator, Owned, Spec, Version, discover
from bonny.errors import OptionError, UsageError
from bonny.kinds import Related
from bonny_dev.operator_checks import check_operator

POD = Kind("v1", "Pod")
V_co = TypeVar("V_co", covariant=True)
T = TypeVar("T")


class ThingSpec(Spec):
    """Nothing at all."""


class Widget(Version):
    """One kind."""

    kind = "Widget"
    version = "v1"
    spec: ThingSpec


class Gadget(Version):
    """Another kind."""

    kind = "Gadget"
    version = "v1"
    spec: ThingSpec


def test_a_generic_base_leaves_the_version_to_its_subclasses() -> None:
    class Base(Controller[V_co], Generic[V_co]): ...

    class OfWidgets(Base[Widget]): ...

    class OfGadgets(Base[Gadget]): ...

    assert (Base.version, Base.resource) == (None, ())
    assert [(known.version, known.resources()) for known in (OfWidgets, OfGadgets)] == [
        (Widget, (Widget,)),
        (Gadget, (Gadget,)),
    ]


def test_a_generic_base_may_have_parameters_of_its_own() -> None:
    """Regression: a second parameter made the class statement fail with "too many values to unpack"."""

    class Base(Controller[V_co], Generic[V_co, T]): ...

    class OfWidgets(Base[Widget, int]): ...

    assert (OfWidgets.version, OfWidgets.resources()) == (Widget, (Widget,))


def test_new_brackets_beat_what_a_base_handles() -> None:
    """Regression: the version was the new one, the kind that was watched the old one."""

    class Base(Controller[V_co], Generic[V_co]):
        resource = POD

    class OfGadgets(Base[Gadget]): ...

    assert (OfGadgets.version, OfGadgets.resources()) == (Gadget, (Gadget,))


def test_a_subclass_may_narrow_what_its_base_handles() -> None:
    class Base(Controller[Widget]): ...

    class Narrow(Base):
        resource = Kind("example.com/v1", "Widget", plural="widgets", scope=Base.kinds("example.com")[0].scope)

    class Again(Narrow): ...

    assert Again.version is Widget
    assert Again.resources() == (Narrow.resource,)


def test_what_a_class_names_itself_beats_its_brackets() -> None:
    class Several(Controller[Widget]):
        resource = (Widget, POD)

    assert Several.resources() == (Widget, POD)


# --- discover ---------------------------------------------------------------------------------------------------------

Written = Callable[..., ModuleType]


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Written]:
    """Writes a package of these modules (dots are folders), and imports it."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(**modules: str) -> ModuleType:
        for name, text in {"__init__": "", **modules}.items():
            path = tmp_path / "found" / f"{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text), "utf-8")
        importlib.invalidate_caches()
        return importlib.import_module("found")

    yield write
    for name in [name for name in sys.modules if name.partition(".")[0] == "found"]:
        del sys.modules[name]


CONTROLLER = "from bonny import Axn, Controller, Kind\nclass {name}(Controller):\n    resource = Kind('v1', 'Pod')\n"


def names(package: ModuleType) -> list[str]:
    return [found.__name__ for found in discover(package)]


def test_modules_are_searched_in_order_of_their_names_also_in_folders(written: Written) -> None:
    package = written(
        zebra=CONTROLLER.format(name="Zebra"),
        apple=CONTROLLER.format(name="B") + CONTROLLER.format(name="A"),
        **{"middle/__init__": "", "middle/deep": CONTROLLER.format(name="Deep")},
    )

    assert names(package) == ["A", "B", "Deep", "Zebra"]
    assert names(package) == names(package)


def test_a_second_name_does_not_make_a_class_two(written: Written) -> None:
    """Regression: two workers handled the same objects at the same time."""
    package = written(one=CONTROLLER.format(name="Pods") + "Legacy = Pods\n", two="from .one import Pods\n")

    assert names(package) == ["Pods"]


def test_bases_that_others_share_are_left_out(written: Written) -> None:
    """Regression: a version without a kind made the operator fail at its start."""
    package = written(
        base="""
            from bonny import Axn, Controller, Kind, Version
            class _Base(Controller):
                resource = Kind("v1", "Pod")
            class Shared(Version):
                version = "v1"
        """,
        use="from .base import _Base\nclass Used(_Base): ...\n",
    )

    assert names(package) == ["Used"]


def test_a_controller_that_handles_nothing_is_found_so_that_somebody_says_so(written: Written) -> None:
    """Leaving it out would be silence about a forgotten pair of brackets."""
    assert names(written(one="from bonny import Controller\nclass Forgotten(Controller): ...\n")) == ["Forgotten"]


def test_a_module_that_cannot_be_imported_is_an_error(written: Written) -> None:
    package = written(**{"folder/__init__": "import no_such_module_at_all\n"})

    with pytest.raises(ModuleNotFoundError, match="no_such_module_at_all"):
        discover(package)


# --- options ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attributes", "sentence"),
    [
        ({"reconcile_every": 0}, "reconcile_every is 0: use more than 0 seconds"),
        ({"max_concurrent": 0}, "max_concurrent is 0: use 1 or more"),
        ({"timeout": -1}, "timeout is -1: use more than 0 seconds"),
        ({"restart": "always"}, "restart is 'always': use permanent, transient, temporary"),
        ({"shutdown_timeout": -1}, "shutdown_timeout is -1: use 0 or more seconds"),
        (
            {"owns": Owned("v1", "ConfigMap")},
            r"Widgets.owns is Owned\(.*: write a tuple, with a comma .*: owns = \(Owned",
        ),
        ({"owns": ("ConfigMap",)}, r"Widgets.owns is \('ConfigMap',\): write a tuple"),
        ({"related": ("v1",)}, r"Widgets.related is \('v1',\): write a tuple"),
        ({"rules": {"verbs": ["get"]}}, r"Widgets.rules is \{'verbs': \['get'\]\}: write a tuple"),
        ({"finalizer": "cleanup"}, "'cleanup' is not the name of a finalizer: use domain/name"),
        ({"reconcile_evry": 5}, r"configured\(reconcile_evry=...\): controllers have no such attribute"),
    ],
)
def test_an_impossible_option_is_refused_in_one_sentence(attributes: dict[str, object], sentence: str) -> None:
    class Widgets(Controller[Widget]): ...

    with pytest.raises(UsageError, match=sentence):
        Widgets.configured(**attributes)


def test_a_controller_whose_field_manager_the_api_server_would_refuse_is_refused() -> None:
    """Regression: the operator started, and each of its writes was refused."""

    class Widgets(Controller[Widget]):
        async def reconcile(self, axn: Axn[Any]) -> None: ...

    def operator() -> None:
        check_operator(Operator(name="o" * 60, group="example.com", controllers=[Widgets]))

    Widgets.__name__ = "W" * 67
    operator()
    for name, length in (("W" * 68, 129), ("Größe" * 10, 131)):
        Widgets.__name__ = name
        told = (
            f"the field manager o{{60}}/{name} has {length} characters .* takes 128: shorten the name of the class or"
        )
        with pytest.raises(OptionError, match=told):
            operator()


def test_a_controller_without_a_handler_is_refused_unless_its_steps_may_be_all() -> None:
    class Widgets(Controller[Widget]):
        def reconsile(self) -> None: ...

    def step(axn: Axn[Any]) -> None: ...

    def operator(controller: type[Controller[Any]], **options: Any) -> None:
        check_operator(Operator(name="o", group="example.com", controllers=[controller], **options))

    with pytest.raises(OptionError, match=r"Widgets has no handler: define reconcile\(self, axn\), or add"):
        operator(Widgets)

    operator(Widgets, steps=[step])
    operator(Widgets.configured(steps=(step,)))


def test_a_configured_controller_keeps_its_name_and_everything_else() -> None:
    class Widgets(Controller[Widget]):
        """What it does."""

        owns = (Owned("v1", "ConfigMap"),)

    quick = Widgets.configured(reconcile_every=5.0, namespace="here")

    assert (quick.__name__, quick.__doc__, quick.version, quick.owns) == (
        "Widgets",
        "What it does.",
        Widget,
        Widgets.owns,
    )
    assert (quick.reconcile_every, Widgets.reconcile_every) == (5.0, 36_000.0)
    assert [kind.namespace for kind in quick.kinds("example.com")] == ["here"]


def test_the_finalizer_is_named_after_operator_group_and_class_unless_it_has_a_name() -> None:
    class HTTPRouteController(Controller[Widget]):
        async def finalize(self, axn: object) -> None: ...

    class Renamed(HTTPRouteController):
        finalizer = "example.com/old-name"

    operator = Operator(name="o", group="example.com", controllers=[HTTPRouteController])

    assert operator.finalizers(HTTPRouteController) == ("o.example.com/http-route-controller",)
    assert operator.finalizers(Renamed) == ("example.com/old-name",)


def test_only_one_handler_may_prune() -> None:
    class One(Controller[Widget]):
        async def reconcile(self, axn: object) -> None: ...

    class Two(One):
        async def modify(self, axn: object) -> None: ...

    assert (One.prunes(), Two.prunes()) == (True, False)


@pytest.mark.parametrize("options", [{}, {"named_by": lambda thing: [], "keys": lambda secret: []}])
def test_a_related_kind_says_whom_it_concerns_in_one_way(options: dict[str, object]) -> None:
    with pytest.raises(OptionError, match=r"Related\('v1', 'Secret'\) needs `named_by` or `keys`, one of them"):
        Related("v1", "Secret", **options)  # type: ignore[arg-type]


def test_a_controller_of_several_versions_works_with_the_hub() -> None:
    class Hub(Version):
        """The one to work with."""

        kind = "Widget"
        version = "v2"
        hub = True
        storage = False
        spec: ThingSpec

    class Other(Version):
        """One more."""

        kind = "Widget"
        version = "v1"
        hub = False
        spec: ThingSpec

    class Widgets(Controller[Other]): ...

    with pytest.raises(
        OptionError, match=rf"Widgets handles Widget v1, but its hub is v2: import Widget from {__name__}, or move"
    ):
        check_operator(Operator(name="o", group="example.com", controllers=[Widgets], crds=[Hub]))


def test_a_controller_that_is_given_twice_is_served_once() -> None:
    """Regression: it had two workers, and each object was reconciled twice."""

    class Once(Controller[Any]):
        resource = Kind("v1", "ConfigMap")

        async def reconcile(self, axn: Axn[Any]) -> None: ...

    assert Operator(name="o", group="example.com", controllers=[Once, Once]).controllers == (Once,)
