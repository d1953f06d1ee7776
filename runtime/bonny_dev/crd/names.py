"""Names: refuses names and options of a version class that are misspelt, or that the API server does not accept.

A running operator does nothing with most of them, and its kinds were installed from a definition. So the tools check
them where they write a definition, and where they check an object.
"""

from __future__ import annotations

from difflib import get_close_matches

from bonny.annotations import annotations_of
from bonny.api.version import OPTIONS, Version
from bonny.errors import OptionError, UsageError

from ..naming import APPROVAL, check_group, check_kind, check_plural, check_version


def check_version_class(version: type[Version]) -> None:
    """Raises: `OptionError` naming the class."""
    try:
        _check_options(version)
        check_kind(version.kind)
        check_plural(version.plural)
        check_plural(version.singular)
        check_version(getattr(version, "version", ""))
        if version.group is not None:
            check_group(version.group, approved=APPROVAL in version.crd_annotations)
    except UsageError as error:
        raise OptionError(f"class {version.__qualname__} in {version.__module__}: {error}") from None


def _check_options(version: type[Version]) -> None:
    """Raises: `OptionError` for an attribute without effect, most often a misspelt one."""
    for base in version.__mro__[: version.__mro__.index(Version)]:
        annotations = annotations_of(base)
        for name in (*vars(base), *annotations):
            # Functions, properties, nested classes and constants are the user's.
            free = hasattr(type(vars(base).get(name)), "__get__") or isinstance(vars(base).get(name), type)
            annotation = annotations.get(name)
            is_field = annotation is not None and "ClassVar" not in str(annotation)
            if is_field and name in OPTIONS and name not in vars(base):
                raise OptionError(f"{name!r} is an option of versions: declare a field of this name as `{name}_: ...`")
            if name in (*OPTIONS, "spec", "status") or free or not name[0].islower():
                continue
            # The name of a field may resemble an option a little; with _ at its end, as much as it likes.
            meant = resembles(name, 0.85 if is_field else 0.6)
            if not is_field or (meant and not name.endswith("_")):
                raise OptionError(
                    f"versions have no {name!r}: "
                    + (f"did you mean {meant!r}? " if meant else "")
                    + f"Write a field beside spec as `{name}: TYPE`, a constant in capitals or with a leading _"
                )


def resembles(name: str, likeness: float = 0.85) -> str:
    """The attribute of versions that `name` seems to mean; empty for none."""
    return next(iter(get_close_matches(name, sorted((*OPTIONS, "spec", "status")), n=1, cutoff=likeness)), "")
