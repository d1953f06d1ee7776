"""Plan: the files that a generator adds to a repository, as text, before the first of them is written.

You need it in every `gen-...` task: render the files, make a plan of them, and write it or show it.
Elsewhere: the content of the files (`generate`, `generators`), and the state of the repository (`survey`).

Guarantees: a file that exists is never changed, unless the plan marks it as an edit; all files are written or none.
The same plan again writes nothing.
"""

from __future__ import annotations

import ast
import builtins
import difflib
import json
import re
import shutil
import subprocess
import sys
import sysconfig
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from bonny.errors import UsageError
from bonny.naming import LABEL_LENGTH, kebab_case

from ..project import Project

# Where the parts of a kind are, with the names of values in braces.
API: Final = "src/{package}/api/{version}/{module}.py"
CONTROLLER: Final = "src/{package}/controllers/{module}.py"
SAMPLE: Final = "samples/{label}-{version}.yaml"
# Of values that are written into code as they are; the templates put quotes around some, and nothing around others.
NAME: Final = re.compile(r"[\w./-]*", re.ASCII)
QUOTED: Final = "differences"
"""The one value of any texts: a list, which is written as Python shows it."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The whole text of every file by its name in the repository, and the notes for its user.

    `edits` are those among the files that exist and get a new text.
    """

    root: Path
    texts: Mapping[str, str]
    notes: tuple[str, ...] = ()
    edits: frozenset[str] = frozenset()
    extras: tuple[str, ...] = ()
    """Extras that the files need."""

    def edited(self) -> tuple[str, ...]:
        """The files that exist with different content."""
        return tuple(name for name in self._differing() if name not in self.edits and (self.root / name).exists())

    def missing(self) -> tuple[str, ...]:
        """The files to write. Raises: `UsageError` when one exists with other content."""
        if edited := self.edited():
            raise UsageError(
                f"{', '.join(edited)}: exists with different content, so nothing was written; move it away or choose "
                "another name"
            )
        return self._differing()

    def diff(self) -> str:
        """The changes that `write` would make, as `git apply` reads them. Raises: as `missing`."""
        return "".join(line for name in self.missing() for line in self._diff_of(name))

    def write(self) -> tuple[str, ...]:
        """Write every missing file, or none; returns their names. Raises: as `missing`; when one cannot be written."""
        missing = self.missing()
        _write_all(self.root, {name: self.texts[name] for name in missing}, self.edits)
        return missing

    def _diff_of(self, name: str) -> Iterator[str]:
        before = (_read(self.root / name) or "").splitlines(keepends=True)
        yield f"diff --git a/{name} b/{name}\n" + ("" if before else "new file mode 100644\n")
        after = self.texts[name].splitlines(keepends=True)
        yield from difflib.unified_diff(before, after, f"a/{name}" if before else "/dev/null", f"b/{name}")

    def _differing(self) -> tuple[str, ...]:
        """The files whose text, if any, is not that of the plan."""
        return tuple(sorted(name for name, text in self.texts.items() if _read(self.root / name) != text))


def rendered(project: Project, templates: Mapping[str, str], values: Mapping[str, Any]) -> dict[str, str]:
    """The text of each file from its template in `bonny_dev.scaffold`; both have `values` in them.

    Raises: `UsageError` for a value that would be more than a name there: it becomes code and the name of a file.
    """
    for slot, value in values.items():
        for text in [value] if isinstance(value, str) else value if isinstance(value, list | tuple) else ():
            if slot != QUOTED and (not NAME.fullmatch(str(text)) or ".." in str(text)):
                raise UsageError(
                    f"{str(text)[:60]!r} cannot be the {slot} in generated code: use letters, digits, "
                    "'-', '_', '.' and '/'"
                )
    names = {pattern.format_map(values): template for pattern, template in templates.items()}
    return {name: _rendered(project, template, values, name) for name, template in names.items()}


def _rendered(project: Project, template: str, values: Mapping[str, Any], name: str) -> str:
    loader = PackageLoader("bonny_dev", "scaffold")
    environment = Environment(  # noqa: S701  (Python and YAML, not HTML)
        loader=loader, undefined=StrictUndefined, keep_trailing_newline=True, trim_blocks=True, lstrip_blocks=True
    )
    text = environment.get_template(template).render(values)
    # A kind may be called I or O, which ruff refuses because they look like digits.
    text = re.sub(r"^(class [IO]\b.*)$", r"\1  # noqa: E742", text, flags=re.MULTILINE)
    return formatted(project, text, name) if name.endswith(".py") else text


def formatted(project: Project, text: str, name: str) -> str:
    """`text` with imports and lines as the repository's formatter wants them; unchanged where ruff is not installed."""
    # ruff finds first-party packages by their files, which do not exist yet.
    own = f"lint.isort.known-first-party=[{project.package!r}]"
    for command in (("check", "--select=I", "--fix-only", "--exit-zero", "--config", own), ("format",)):
        done = _ruff(project, command, text, name)
        text = done.stdout if done.returncode == 0 else text
    return text


def complaints(project: Project, text: str, name: str) -> set[str]:
    """The codes of the rules that the repository's linter finds broken in `text`; none where ruff is not installed."""
    done = _ruff(project, ("check", "--output-format=json"), text, name)
    return {str(each["code"]) for each in json.loads(done.stdout or "[]")}


def _ruff(project: Project, command: Sequence[str], text: str, name: str) -> subprocess.CompletedProcess[str]:
    """Run ruff on `text` as that of the file `name`; it fails, with an empty output, where ruff is not installed."""
    # A start of Python takes longer than all that ruff does with a file, but finds ruff wherever it is installed.
    program = shutil.which("ruff", path=sysconfig.get_path("scripts"))
    start = [program] if program else [sys.executable, "-m", "ruff"]
    line = [*start, *command, "--quiet", "--stdin-filename", str(project.root / name), "-"]
    return subprocess.run(line, input=text, capture_output=True, text=True, encoding="utf-8", check=False)


def check_free(name: str, what: str, texts: Mapping[str, str]) -> None:
    """Refuse a `name` that Python or a generated module uses for something else.

    Raises: `UsageError`, in which `what` names the purpose: `a kind`.
    """
    modules = [ast.parse(text) for file, text in texts.items() if file.endswith(".py")]
    bound = [item for module in modules for item in Counter(_bound(module)).items()]
    if any(times > 1 or hasattr(builtins, defined) for defined, times in bound):
        longer = f"My{name}" if name[:1].isupper() else f"my-{name}"
        raise UsageError(
            f"{name!r} cannot be {what}: Python or a generated file already uses the name; use for example {longer}"
        )


def check_finalizes(kind: str) -> None:
    """Raises: `UsageError` when the finalizer of a controller of that name would have a name that is too long."""
    name = kebab_case(f"{kind}Controller")
    if len(name) > LABEL_LENGTH:
        raise UsageError(
            f"the finalizer of {kind} would be called {name}, and {LABEL_LENGTH} characters are allowed: choose a "
            "shorter name, or leave out --finalizer"
        )


def _bound(module: ast.Module) -> Iterator[str]:
    """The names that the lines of a module define."""
    for node in module.body:
        match node:
            case ast.Import(names) | ast.ImportFrom(names=names):
                yield from (alias.asname or alias.name for alias in names)
            case ast.ClassDef(name) | ast.FunctionDef(name) | ast.AsyncFunctionDef(name):
                yield name
            case ast.Assign(targets=[ast.Name(name)]):
                yield name


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None  # a folder, or not text: not written by a generator


def _write_all(root: Path, texts: Mapping[str, str], edits: Collection[str]) -> None:
    """Write every file, or none: when one fails, remove the others again. An edit keeps the permissions of its file."""
    try:
        with ExitStack() as undo:
            for name, text in texts.items():
                path = root / name
                for folder in reversed([path.parent, *path.parent.parents]):
                    if not folder.exists():
                        folder.mkdir()
                        undo.callback(folder.rmdir)
                if name in edits:
                    undo.callback(path.write_bytes, path.read_bytes())
                # x: never over a file that just appeared
                with path.open("w" if name in edits else "x", encoding="utf-8", newline="\n") as file:
                    if name not in edits:
                        undo.callback(path.unlink)
                    file.write(text)
            undo.pop_all()
    except OSError as error:
        raise UsageError(
            f"{error.filename or path} cannot be written ({error.strerror}), so nothing was: fix that and try again"
        ) from error
