"""NamesKinds: a class with handlers for some kinds: the base of controllers and admission webhooks. Internal."""

from __future__ import annotations

from typing import Any, ClassVar

from ..errors import OptionError
from ..kinds import Kind
from .version import Version, version_in_brackets


class NamesKinds:
    """Base of `Controller` and `Admission`: it names its kinds by `resource`, or a version class in brackets."""

    resource: ClassVar[type[Version] | Kind | tuple[type[Version] | Kind, ...]] = ()
    """The kinds. Default: the version class in brackets."""

    version: ClassVar[type[Version] | None] = None
    """The version class in brackets, if there is one."""

    _without_kinds: ClassVar[str]
    """The error of a class without kinds, up to how to name one."""

    # --- called by the runtime ---

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        # Only this class's own brackets: __init_subclass__ ran for each base before.
        if version := version_in_brackets(cls, NamesKinds):
            cls.version = version
            if "resource" not in vars(cls):
                cls.resource = version
        cls._check()

    @classmethod
    def _check(cls) -> None:
        """Raises: `OptionError` for impossible values."""

    @classmethod
    def resources(cls) -> tuple[type[Version] | Kind, ...]:
        """The kinds, always as a tuple. Raises: `OptionError` when nothing is named."""
        resources = cls.resource if isinstance(cls.resource, tuple) else (cls.resource,)
        if not resources:
            raise OptionError(f"{cls.__name__} {cls._without_kinds}, or set resource = Kind(...)")
        return resources

    @classmethod
    def version_for(cls, group: str, version: str, kind: str, *, default_group: str = "") -> type[Version] | None:
        """The version class for objects of this group, version (`v1`) and kind; None for kinds without one.

        Without a `default_group`, classes without a group fit any.
        """
        wanted = group, version, kind
        versions = (each for each in cls.resources() if isinstance(each, type))
        return next((v for v in versions if (v.group or default_group or group, v.version, v.kind) == wanted), None)

    @classmethod
    def kinds(cls, default_group: str) -> tuple[Kind, ...]:
        """The kinds; versions without a group are in `default_group`."""
        return tuple(each if isinstance(each, Kind) else each.as_kind(default_group) for each in cls.resources())
