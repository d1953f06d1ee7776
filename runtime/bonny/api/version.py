"""Version: one version of one of your kinds, written as a class.

You need it to declare an API: its names, its typed spec and status, its columns in `kubectl get`.
You do not need it to reconcile kinds that you did not define: use `bonny.kinds.Kind`.

    class Widget(Version):
        \"\"\"A thing of some size.\"\"\"

        kind = "Widget"
        plural = "widgets"
        version = "v1"
        storage = True
        hub = True
        spec: WidgetSpec
        status: WidgetStatus
        columns = (Column("Size", "integer", ".spec.size"), AGE)

Whether users must give a spec is declared as for any field: `spec: WidgetSpec` is required, `spec: WidgetSpec | None =
None` may be left out, and `spec: WidgetSpec = WidgetSpec()` is filled in by the API server. Other annotations are
fields beside spec and status. Objects stay plain mappings, read by `spec_of`, `status_of` and `read`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Protocol, Self, TypeVar, cast, get_args, get_origin

from ..kinds import Kind, Scope
from ..naming import plural_of
from ..resource import Resource
from .object_model import ObjectModel, object_model_of
from .reading import read
from .rules import Rule
from .status import Status

S = TypeVar("S")
S_co = TypeVar("S_co", covariant=True)


class HasSpec(Protocol[S_co]):
    """A version class with a typed spec."""

    @property
    def spec(self) -> S_co:
        """The typed spec."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`, as in `Column("Size", "integer", ".spec.size")`."""

    name: str
    """The heading."""

    type: Literal["boolean", "date", "integer", "number", "string"]
    """The format of the value; a date is shown as an age."""

    path: str
    """JSONPath of the value, without braces: `.spec.size`. Empty for objects without such a value."""

    _: KW_ONLY

    description: str = ""
    """One line for `kubectl explain` and the documentation. Default: none."""

    priority: int = 0
    """Columns with 0 (the default) are always shown, with 1 and above only by `-o wide`."""

    format: Literal["", "int32", "int64", "float", "double", "byte", "date", "date-time", "password"] = ""
    """An OpenAPI format, for clients that use it. Default: none."""


AGE: Final = Column("Age", "date", ".metadata.creationTimestamp")
"""The default column of `kubectl get`. A kind with columns of its own lists it explicitly."""


@dataclass(frozen=True, slots=True)
class Scale:
    """The replica fields for `kubectl scale` and autoscalers: `Scale(".spec.replicas", ".status.replicas")`."""

    spec_replicas: str
    """The path of the desired number, an integer below `.spec`."""

    status_replicas: str
    """The path of the observed number, an integer below `.status`."""

    _: KW_ONLY

    selector: str = ""
    """The path of a label selector as a string, required by the HorizontalPodAutoscaler. Default: none."""


class Version:
    """Base of your API classes; see the top of this module for an example."""

    kind: ClassVar[str]
    """The name of the type in CamelCase, as in the `kind` field of objects."""

    version: ClassVar[str]
    """The name of the version: `v1`, `v1beta1`, `v2alpha1`."""

    plural: ClassVar[str] = ""
    """The name in URLs. Default: derived from the kind by `naming.plural_of`."""

    singular: ClassVar[str] = ""
    """The name of one object for `kubectl get`. Default: the kind in lower case."""

    group: ClassVar[str | None] = None
    """The API group. Default None: the group of the operator."""

    scope: ClassVar[Scope] = Scope.NAMESPACED
    """Whether objects are namespaced or cluster-wide. Default: namespaced."""

    storage: ClassVar[bool] = False
    """Whether objects are stored in this version: True on exactly one version of a kind. Default False."""

    served: ClassVar[bool] = True
    """Whether clients can use this version. Default True."""

    hub: ClassVar[bool] = False
    """Whether the operator works with this version: True on exactly one version of a kind, which must be served.
    Default False."""

    deprecated: ClassVar[bool] = False
    """Whether clients that use this version are warned. Default False."""

    deprecation_warning: ClassVar[str] = ""
    """The text of that warning. Default: a sentence of the API server with version and kind."""

    columns: ClassVar[tuple[Column, ...]] = ()
    """Columns of `kubectl get`. Default: name and age."""

    rules: ClassVar[tuple[Rule, ...]] = ()
    """Conditions on whole objects. Default: none."""

    scale: ClassVar[Scale | None] = None
    """The replica fields of the scale subresource. Default: no scale subresource."""

    selectable: ClassVar[tuple[str, ...]] = ()
    """Paths of up to 8 fields for field selectors, as in `.spec.colour`: strings, integers, booleans. Default: none."""

    short_names: ClassVar[tuple[str, ...]] = ()
    """Other names for `kubectl get`, such as `wd`. Default: none."""

    categories: ClassVar[tuple[str, ...]] = ()
    """Groups of kinds for `kubectl get`, such as `all`. Default: none."""

    if TYPE_CHECKING:
        spec: Any  # each version annotates its own

    status_subresource: ClassVar[bool] = True
    """Whether the status is a subresource. Otherwise clients write the status together with the object, the operator
    never writes it, and `has_conditions` is False. Default True."""

    crd_labels: ClassVar[Mapping[str, str]] = {}
    """Labels of the CustomResourceDefinition. Default: none."""

    crd_annotations: ClassVar[Mapping[str, str]] = {}
    """Annotations of the CustomResourceDefinition. Groups below k8s.io need one: `api-approved.kubernetes.io`, with the
    address of the approval, or `unapproved` and a reason. Default: none."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if not hasattr(cls, "kind"):
            return  # a base class that several kinds share
        plural = plural_of(cls.kind)
        cls.plural, cls.singular = cls.plural or plural, cls.singular or cls.kind.lower()

    @staticmethod
    def to_hub(resource: Resource) -> Resource:
        """Convert an object of this version to the hub version; see `bonny.api.conversion`. Default: unchanged."""
        return resource

    @staticmethod
    def from_hub(resource: Resource) -> Resource:
        """Convert an object of the hub version to this version. Default: unchanged."""
        return resource

    @classmethod
    def as_kind(cls, default_group: str) -> Kind:
        """The `Kind` of this version; `default_group` is the operator's group."""
        group = cls.group or default_group
        return Kind(f"{group}/{cls.version}", cls.kind, plural=cls.plural, scope=cls.scope)

    @classmethod
    def status_model(cls) -> type[Status] | None:
        """The class of `status`, which the operator writes; None for a kind without the status subresource."""
        return object_model(cls).status if cls.status_subresource else None

    @classmethod
    def has_conditions(cls) -> bool:
        """Whether the status has conditions."""
        return _status_has(cls, "conditions")

    @classmethod
    def has_observed_generation(cls) -> bool:
        """Whether the status has the last reconciled generation."""
        return _status_has(cls, "observed_generation")

    @classmethod
    def spec_of(cls: type[HasSpec[S]], resource: Mapping[str, Any]) -> S:
        """The typed spec of `resource`; a plain mapping if it has no schema; None if it is optional and left out.

        Raises: `InvalidObject` with the fields, never their content.
        """
        its = object_model(cast("type[Version]", cls))
        given = its.given("spec", resource)
        if its.spec is None or (given is None and its.model.model_fields["spec"].default is None):
            return cast("S", given)
        return cast("S", read(its.spec, given, where="spec"))

    @classmethod
    def status_of(cls, resource: Mapping[str, Any]) -> Status | None:
        """The typed status of `resource`; None for a kind without status. Raises: as `spec_of`."""
        its = object_model(cls)
        return None if its.status is None else read(its.status, its.given("status", resource), where="status")

    @classmethod
    def read(cls, resource: Mapping[str, Any]) -> Self:
        """All fields of `resource`, typed: `WidgetClass.read(resource).value`. Raises: as `spec_of`."""
        whole, found = read(object_model(cls).model, resource, where=cls.kind), cls()
        halves = {"spec": cls.spec_of(resource), "status": cls.status_of(resource)}
        vars(found).update({name: halves.get(name, value) for name, value in whole})
        return found


def _status_has(version: type[Version], field: str) -> bool:
    model = version.status_model()
    return model is not None and field in model.model_fields


def object_model(version: type[Version]) -> ObjectModel:
    """The fields of `version`, resolved on first use: their classes may be defined further down in the module."""
    if version not in _MODELS:
        _MODELS[version] = object_model_of(version, OPTIONS, version.rules)
    return _MODELS[version]


OPTIONS: Final = frozenset({*vars(Version), *Version.__annotations__})
"""Attributes that are not fields."""

_MODELS: Final[dict[type[Version], ObjectModel]] = {}


def version_in_brackets(cls: type, base: type) -> type[Version] | None:
    """The version class that `cls` itself names for `base`, as in `class WidgetController(Controller[Widget])`."""
    for generic in vars(cls).get("__orig_bases__", ()):
        if isinstance(origin := get_origin(generic), type) and issubclass(origin, base):
            return next(
                (each for each in get_args(generic) if isinstance(each, type) and issubclass(each, Version)), None
            )
    return None
