"""Project: the operator repository in which a task runs, as its pyproject.toml describes it.

You need it to find the operator's package from wherever `invoke` was called.
"""

from __future__ import annotations

import importlib
import keyword
import re
import sys
import tomllib
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bonny.errors import UsageError

from .operator_checks import check_operator
from .wheel import UNDELIVERED, UNFIT, fits

if TYPE_CHECKING:
    from bonny.operator import Operator


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """The paths and names of a repository. `image` has no tag, and is empty for none; `version` is the distribution's;
    `extras` are the extras in pyproject.toml that go into the image."""

    root: Path
    package: str
    image: str
    version: str
    extras: tuple[str, ...] = ()

    @classmethod
    def at(cls, root: Path, *, fitting: bool = True) -> Project:
        """Read `pyproject.toml` in `root`; with `fitting`, its runtime has to be of the same version as these tools.

        Raises: `UsageError` when the file is not that of an operator repository, or its runtime is of another version
        than these tools.
        """
        path = root / "pyproject.toml"
        if (root / "vendor" / "bonny_dev").is_dir():
            raise UsageError(UNDELIVERED)
        if fitting and not fits(root / "vendor" / "bonny"):
            raise UsageError(UNFIT)
        try:
            table = tomllib.loads(path.read_text(encoding="utf-8"))
            bonny = table["tool"]["bonny"]
            return cls(
                root=root,
                package=_checked(bonny["package"], table["project"], path),
                image=bonny.get("image", ""),
                version=table["project"]["version"],
                extras=tuple(bonny.get("extras", ())),
            )
        except OSError as error:
            raise UsageError(
                f"{path} cannot be read ({error.strerror}): run this task in an operator's repository"
            ) from error
        except tomllib.TOMLDecodeError as error:
            raise UsageError(f"{path} is not valid TOML ({error}): fix it and try again") from error
        except (KeyError, TypeError) as error:
            raise UsageError(
                f"{path} lacks [project] version, or package in [tool.bonny]: add them, "
                'for example package = "widgets_operator"'
            ) from error

    @property
    def source(self) -> Path:
        """The folder of the operator's own package."""
        return self.root / "src" / self.package

    @property
    def tagged_image(self) -> str:
        """The image of this version. Raises: `UsageError` when pyproject.toml names no repository for it."""
        if not self.image:
            raise UsageError(
                f"{self.root / 'pyproject.toml'} names no image: add it to [tool.bonny], for example "
                'image = "registry.example.com/widgets-operator"'
            )
        return f"{self.image}:{self.version}"

    def load_operator(self) -> Operator:
        """Import the operator that operator.py declares, whether or not the project is installed.

        Raises: `UsageError` when there is no such file, it cannot be imported (with the lines of this repository that
        led there), or its parts do not fit together; `ModuleNotFoundError` when a package is not installed.
        """
        path = self.source / "operator.py"
        if not path.is_file():
            raise UsageError(f"{path} is missing: restore it, or correct package in [tool.bonny] of pyproject.toml")
        if str(self.source.parent) not in sys.path:
            sys.path.insert(0, str(self.source.parent))
        try:
            operator: Operator = importlib.import_module(f"{self.package}.operator").operator
        except UsageError:
            raise
        except Exception as error:
            from bonny.carried import missing  # noqa: PLC0415  `invoke --list` must stay light

            if isinstance(error, ImportError) and (absent := missing(error)):
                raise absent from error
            if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] != self.package:
                raise
            raise UsageError(f"{path} cannot be imported:\n{self._explained(error)}") from error
        check_operator(operator)
        return operator

    def _explained(self, error: Exception) -> str:
        """The traceback without frames outside of this repository."""
        root, vendored = str(self.root), str(self.root / "vendor")
        frames = traceback.extract_tb(error.__traceback__)
        ours = [each for each in frames if each.filename.startswith(root) and not each.filename.startswith(vendored)]
        return "".join([*traceback.format_list(ours), *traceback.format_exception_only(error)]).rstrip()


def _checked(package: str, project: Mapping[str, Any], path: Path) -> str:
    """The name of the operator's package, which becomes code and the name of a folder. Raises: `UsageError`."""
    extras = (each for extra in project.get("optional-dependencies", {}).values() for each in extra)
    needed = (re.split(r"[^\w.-]", each, maxsplit=1)[0] for each in (*project.get("dependencies", ()), *extras))
    names = {"bonny", "bonny_dev", "yaml", *(re.sub(r"[-.]", "_", each).lower() for each in needed)}
    if (
        not re.fullmatch("[a-z_][a-z0-9_]*", package)
        or keyword.iskeyword(package)
        or package in names | sys.stdlib_module_names
    ):
        raise UsageError(
            f"package {package!r} in [tool.bonny] of {path} cannot be a package of this operator: use a lower-case "
            "name that neither Python nor a package in its dependencies has, for example widgets_operator"
        )
    return package
