"""Version: one version of one of your kinds, written as a class.

You need it to declare an API: its names, its typed spec and status, its columns in `kubectl get`.
You do not need it to handle kinds of others: `bonny.kinds.Kind` names those.
Elsewhere: how fields become a schema (`schema`), how versions become a CustomResourceDefinition (`crd`).

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

The class is a declaration and is never instantiated: objects stay plain mappings, `spec_of` and `status_of` read them.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from difflib import get_close_matches
from typing import Any, ClassVar, Final, Literal, get_type_hints

import msgspec

from ..errors import InvalidObject, OptionError, UsageError
from ..kinds import Kind, Scope
from ..naming import check_group, check_kind, check_plural, check_tuple, check_version, names_of
from ..resource import Resource
from .reading import read
from .rules import RULES, Rule
from .schema import ordered, structural
from .status import Spec, Status
from .validation import as_stored, problems

__all__ = ["AGE", "Column", "Scale", "Version"]

WARNING_BYTES: Final = 256
"""What the API server allows for a deprecation warning."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`, as in `Column("Size", "integer", ".spec.size")`."""

    name: str
    """The heading."""

    type: Literal["boolean", "date", "integer", "number", "string"]
    """How the value is shown; a date is shown as an age."""

    path: str
    """Where the value is, as a JSONPath without the braces: `.spec.size`. An object without it shows nothing."""

    _: KW_ONLY

    description: str = ""
    """One line for `kubectl explain` and the documentation. Default: none."""

    priority: int = 0
    """0 (the default) is always shown, 1 and above only with `-o wide`."""

    format: Literal["", "int32", "int64", "float", "double", "byte", "date", "date-time", "password"] = ""
    """How to show it, for clients that can. Default: as its type is shown."""

    def __post_init__(self) -> None:
        if not self.path.startswith("."):
            raise OptionError(
                f"the path {self.path!r} of column {self.name!r} does not start with a dot: "
                "write for example '.spec.size'"
            )


AGE: Final = Column("Age", "date", ".metadata.creationTimestamp")
"""What `kubectl get` shows for kinds without columns; once there are columns, ask for it."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Where `kubectl scale` and autoscalers find the replicas: `Scale(".spec.replicas", ".status.replicas")`."""

    spec_replicas: str
    """The path of the wanted number, an integer below `.spec`."""

    status_replicas: str
    """The path of the observed number, an integer below `.status`."""

    _: KW_ONLY

    selector: str = ""
    """The path of a label selector as a string, which autoscalers of pods need. Default: none."""


class Version:
    """Base of your API classes; see the top of this module for an example."""

    kind: ClassVar[str]
    """CamelCase, as objects write it."""

    version: ClassVar[str]
    """`v1`, `v1beta1`, `v2alpha1`."""

    plural: ClassVar[str] = ""
    """The name in URLs. Default: what `naming.names_of` makes of the kind."""

    singular: ClassVar[str] = ""
    """The name for one in `kubectl get`. Default: the kind in lower case."""

    group: ClassVar[str | None] = None
    """The API group. Default None: that of the operator."""

    scope: ClassVar[Scope] = Scope.NAMESPACED
    """Whether objects live in a namespace. Default: they do."""

    storage: ClassVar[bool] = False
    """Whether objects are stored in this version: True on exactly one version of a kind. Default False."""

    served: ClassVar[bool] = True
    """Whether clients can use this version. Default True."""

    hub: ClassVar[bool] = False
    """Whether the operator works with this version: True on exactly one, served, version of a kind. Default False."""

    deprecated: ClassVar[bool] = False
    """Whether clients that use this version are warned. Default False."""

    deprecation_warning: ClassVar[str] = ""
    """What they read. Default: a sentence of the API server that names version and kind."""

    columns: ClassVar[tuple[Column, ...]] = ()
    """Columns of `kubectl get`. Default: name and age."""

    rules: ClassVar[tuple[Rule, ...]] = ()
    """Conditions on whole objects. Default: none."""

    scale: ClassVar[Scale | None] = None
    """Where the replicas are, for the scale subresource. Default: there is none."""

    selectable: ClassVar[tuple[str, ...]] = ()
    """Paths of up to 8 fields for field selectors, as in `.spec.colour`: strings, integers, booleans. Default: none."""

    short_names: ClassVar[tuple[str, ...]] = ()
    """Other names for `kubectl get`, such as `wd`. Default: none."""

    categories: ClassVar[tuple[str, ...]] = ()
    """Groups of kinds for `kubectl get`, such as `all`. Default: none."""

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
            warning = cls.deprecation_warning
            if warning and not (cls.deprecated and warning.isprintable() and len(warning.encode()) <= WARNING_BYTES):
                raise OptionError(
                    f"deprecation_warning is {warning!r}: use one line of at most {WARNING_BYTES} bytes, and only with "
                    "deprecated = True"
                )
        except UsageError as error:
            raise OptionError(f"class {cls.__qualname__} in {cls.__module__}: {error}") from None

    @staticmethod
    def to_hub(resource: Resource) -> Resource:
        """An object of this version in the form of the hub; see `bonny.api.conversion`. Default: unchanged."""
        return resource

    @staticmethod
    def from_hub(resource: Resource) -> Resource:
        """An object of the hub in the form of this version. Default: unchanged."""
        return resource

    @classmethod
    def as_kind(cls, default_group: str) -> Kind:
        """The `Kind` that this version is served as; `default_group` is the operator's."""
        group = cls.group or default_group
        return Kind(f"{group}/{cls.version}", cls.kind, plural=cls.plural, scope=cls.scope)

    @classmethod
    def spec_model(cls) -> type[Spec]:
        """The class that `spec` is annotated with. Raises: `OptionError` when it is not a `Spec`."""
        return _models(cls)[0]

    @classmethod
    def status_model(cls) -> type[Status] | None:
        """The class that `status` is annotated with; None where a kind has no status."""
        return _models(cls)[1]

    @classmethod
    def has_conditions(cls) -> bool:
        """Whether its status can hold conditions."""
        return _status_has(cls, "conditions")

    @classmethod
    def has_observed_generation(cls) -> bool:
        """Whether its status can hold the generation that was handled last."""
        return _status_has(cls, "observed_generation")

    @classmethod
    def schema(cls) -> Resource:
        """The schema of whole objects, as a CustomResourceDefinition has it. Raises: `OptionError` naming the field."""
        return object_schema(cls)

    @classmethod
    def check(cls, resource: Mapping[str, Any]) -> Resource:
        """`resource` as the API server would store it: without nulls and unknown fields, with defaults.

        Does not: evaluate rules in CEL, or look at metadata. Raises: `InvalidObject` naming the fields.
        """
        given: Resource = msgspec.to_builtins(resource)
        schema = cls.schema()
        stored = as_stored({name: given[name] for name in schema["properties"] if name in given}, schema)
        if found := list(problems(stored, schema, "")):
            raise InvalidObject("; ".join(problem.removeprefix(".") for problem in found))
        return {**given, **stored}

    @classmethod
    def spec_of(cls, resource: Mapping[str, Any]) -> Spec:
        """The typed spec of `resource`. Raises: `InvalidObject` naming the fields, never their content."""
        return read(cls.spec_model(), resource.get("spec"), where="spec")

    @classmethod
    def status_of(cls, resource: Mapping[str, Any]) -> Status | None:
        """The typed status of `resource`, empty where it has none yet; None for kinds without. Raises: as `spec_of`."""
        model = cls.status_model()
        return None if model is None else read(model, resource.get("status"), where="status")


def _check_names(version: type[Version]) -> None:
    """Raises: `OptionError` for an attribute that nobody reads: most often a misspelt one."""
    known = {*vars(Version), *Version.__annotations__, "spec", "status"}
    for base in version.__mro__[: version.__mro__.index(Version)]:
        for name in (*vars(base), *base.__annotations__):
            # Functions, properties and classes inside are the user's; so is what a constant's name says.
            free = hasattr(type(vars(base).get(name)), "__get__") or isinstance(vars(base).get(name), type)
            if name not in known and name[0].islower() and not free:
                meant = ", ".join(get_close_matches(name, sorted(known), n=1))
                raise OptionError(
                    f"versions have no {name!r}"
                    + (f": did you mean {meant!r}?" if meant else ": write constants in capitals, or begin with _")
                )


def object_schema(version: type[Version]) -> Resource:
    """The root of the schema of `version`, with its spec and status."""
    place = f"{version.kind} {version.version}"
    spec = structural(version.spec_model(), where=f"{place}: spec")
    schema: Resource = {"type": "object"}
    if version.__doc__:
        schema["description"] = inspect.cleandoc(version.__doc__)
    if version.rules:
        schema[RULES] = [rule.as_keyword() for rule in version.rules]
    # Without a default the API server would fill in nothing inside of a spec that was left out. Rules look at a default
    # as it is written, before the defaults inside of it are filled in.
    if spec.get("required"):
        schema["required"] = ["spec"]
    else:
        spec = ordered({**spec, "default": as_stored({}, spec) if RULES in spec else {}})
    schema["properties"] = {"spec": spec}
    status = version.status_model()
    if status is not None:
        schema["properties"]["status"] = structural(status, where=f"{place}: status")
    return schema


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
