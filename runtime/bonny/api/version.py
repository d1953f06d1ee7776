"""Version: one version of one of your kinds, written as a class.

You need it to declare an API: its names, its typed spec and status, its columns in `kubectl get`.
You do not need it to reconcile kinds that you did not define: use `bonny.kinds.Kind`.
Elsewhere: schemas of fields (`schema`), CustomResourceDefinitions (`bonny_dev.crd`).

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

The class is a declaration and is never instantiated: objects stay plain mappings, read by `spec_of` and `status_of`.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Protocol, TypeVar, cast, get_type_hints

import msgspec

from ..errors import InvalidObject, OptionError, UsageError
from ..kinds import Kind, Scope
from ..naming import check_group, check_kind, check_plural, check_tuple, check_version, names_of
from ..resource import Resource
from .reading import read
from .rules import RULES, Rule
from .schema import ordered, structural
from .status import Spec, Status
from .strict import unknown_fields
from .validation import as_stored, problems

# Parts of an object that its schema does not describe.
_TYPE_AND_METADATA: Final[Resource] = {"apiVersion": {}, "kind": {}, "metadata": {}}

S = TypeVar("S")
S_co = TypeVar("S_co", covariant=True)


class HasSpec(Protocol[S_co]):
    """A version class with a typed spec."""

    @property
    def spec(self) -> S_co: ...


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
    """The name in URLs. Default: derived from the kind by `naming.names_of`."""

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
    """Whether the operator works with this version: True on exactly one, served, version of a kind. Default False."""

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

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if not hasattr(cls, "kind"):
            return  # a base class that several kinds share
        try:
            _check_names(cls)
            for name, of, example in (
                ("short_names", str, '"wd"'),
                ("categories", str, '"all"'),
                ("columns", Column, "AGE"),
            ):
                check_tuple(cls.__name__, name, getattr(cls, name), of, example)
            check_kind(cls.kind)
            cls.plural = check_plural(cls.plural or names_of(cls.kind).plural)
            cls.singular = check_plural(cls.singular or names_of(cls.kind).singular)
            check_version(getattr(cls, "version", ""))
            if cls.group is not None:
                check_group(cls.group)
            for name in cls.short_names:
                check_plural(name, "short name", example="ct")
            for name in cls.categories:
                check_plural(name, "category", example="all")
        except UsageError as error:
            raise OptionError(f"class {cls.__qualname__} in {cls.__module__}: {error}") from None

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
    def spec_model(cls) -> type[Spec]:
        """The annotation of `spec`. Raises: `OptionError` when it is not a `Spec`."""
        return _models(cls)[0]

    @classmethod
    def status_model(cls) -> type[Status] | None:
        """The annotation of `status`; None for a kind without status."""
        return _models(cls)[1]

    @classmethod
    def has_conditions(cls) -> bool:
        """Whether the status has conditions."""
        return _status_has(cls, "conditions")

    @classmethod
    def has_observed_generation(cls) -> bool:
        """Whether the status has the last reconciled generation."""
        return _status_has(cls, "observed_generation")

    @classmethod
    def schema(cls) -> Resource:
        """The schema of whole objects, as CustomResourceDefinitions have it. Raises: `OptionError` with the field."""
        label = f"{cls.kind} {cls.version}"
        spec = structural(cls.spec_model(), where=f"{label}: spec")
        schema: Resource = {"type": "object"}
        if cls.__doc__:
            schema["description"] = inspect.cleandoc(cls.__doc__)
        if cls.rules:
            schema[RULES] = [rule.as_keyword() for rule in cls.rules]
        # Without a default of the spec the API server would not fill in the defaults inside an absent one. Rules see a
        # default as it is written, before the defaults inside it are filled in.
        if spec.get("required"):
            schema["required"] = ["spec"]
        else:
            spec = ordered({**spec, "default": as_stored({}, spec) if RULES in spec else {}})
        schema["properties"] = {"spec": spec}
        status = cls.status_model()
        if status is not None:
            schema["properties"]["status"] = structural(status, where=f"{label}: status")
        return schema

    @classmethod
    def check(cls, resource: Mapping[str, Any], *, strict: bool = False) -> Resource:
        """A copy of `resource` as the API server would store it: without nulls and unknown fields, with defaults.

        `strict` refuses unknown fields instead, as kubectl does; default False, as the API server.
        Does not: evaluate rules in CEL, or check metadata. Raises: `InvalidObject` with the fields.
        """
        given: Resource = msgspec.to_builtins(resource)
        schema = cls.schema()
        stored = as_stored({name: given[name] for name in schema["properties"] if name in given}, schema)
        errors = list(problems(stored, schema, ""))
        if strict:
            errors += unknown_fields(
                given, {**schema, "properties": {**_TYPE_AND_METADATA, **schema["properties"]}}, ""
            )
        if errors:
            raise InvalidObject("; ".join(error.removeprefix(".") for error in errors))
        return {**given, **stored}

    @classmethod
    def spec_of(cls: type[HasSpec[S]], resource: Mapping[str, Any]) -> S:
        """The typed spec of `resource`. Raises: `InvalidObject` with the fields, never their content."""
        model = cast("type[Version]", cls).spec_model()
        return cast("S", read(model, resource.get("spec"), where="spec"))

    @classmethod
    def status_of(cls, resource: Mapping[str, Any]) -> Status | None:
        """The typed status of `resource`; None for a kind without status. Raises: as `spec_of`."""
        model = cls.status_model()
        return None if model is None else read(model, resource.get("status"), where="status")


def _check_names(version: type[Version]) -> None:
    """Raises: `OptionError` for an attribute without effect, most often a misspelt one."""
    options = {*vars(Version), *Version.__annotations__, "spec", "status"}
    for base in version.__mro__[: version.__mro__.index(Version)]:
        for name in (*vars(base), *base.__annotations__):
            # Functions, properties, nested classes and constants are the user's.
            free = hasattr(type(vars(base).get(name)), "__get__") or isinstance(vars(base).get(name), type)
            if name not in options and name[0].islower() and not free:
                meant = ", ".join(get_close_matches(name, sorted(options), n=1))
                raise OptionError(
                    f"versions have no {name!r}"
                    + (f": did you mean {meant!r}?" if meant else ": write constants in capitals, or begin with _")
                )


def _status_has(version: type[Version], field: str) -> bool:
    model = version.status_model()
    return model is not None and field in model.model_fields


def _models(version: type[Version]) -> tuple[type[Spec], type[Status] | None]:
    """The classes of spec and status, resolved on first use: they may be defined further down in the module."""
    if version not in _RESOLVED:
        _RESOLVED[version] = _resolve(version)
    return _RESOLVED[version]


_RESOLVED: Final[dict[type[Version], tuple[type[Spec], type[Status] | None]]] = {}


def _resolve(version: type[Version]) -> tuple[type[Spec], type[Status] | None]:
    where = f"class {version.__qualname__} in {version.__module__}"
    try:
        hints = get_type_hints(version)
    except NameError as error:
        raise OptionError(
            f"{where}: its annotations name {error.name!r}, which is not defined there: import it"
        ) from None
    spec, status = hints.get("spec"), hints.get("status")
    if not (isinstance(spec, type) and issubclass(spec, Spec)):
        raise OptionError(
            f"{where}: annotate spec with a class derived from Spec, for example `spec: {version.kind}Spec`"
        )
    if status is None:
        return spec, None
    if not (isinstance(status, type) and issubclass(status, Status)):
        raise OptionError(
            f"{where}: annotate status with a class derived from Status, for example `status: {version.kind}Status`"
        )
    return spec, status
