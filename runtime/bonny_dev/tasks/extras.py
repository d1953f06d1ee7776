"""Extras: the optional parts of the runtime that a repository carries: which there are, who uses them, add, remove.

`extras` in [tool.bonny] of pyproject.toml is the list. Each extra is folders of vendor/bonny, or none, and packages of
the image. The sources of all extras come with the developer tools, so nothing is fetched, and they always fit.

Guarantees: vendor/bonny and pyproject.toml change together or not at all. A file that was edited here is
neither replaced nor removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bonny.carried import MissingExtra, missing
from bonny.errors import UsageError

from .. import wheel
from ..lines import code_lines
from ..project import Project
from ..staging import staging
from ..uses import imports
from .pyproject import PROJECT, normal_name, with_extra, without_extra

if TYPE_CHECKING:
    from bonny.operator import Operator


class State(NamedTuple):
    """One extra in one repository."""

    name: str
    purpose: str
    present: bool
    """Whether pyproject.toml lists it and its folders are in vendor/bonny."""

    lines: int
    """Lines of code that it adds to vendor/bonny, counted without blank lines, comments and docstrings."""

    packages: tuple[str, ...]
    users: tuple[str, ...]
    """Classes, options and modules of this repository that use it."""


def states(project: Project) -> list[State]:
    """All extras, in the order of the table."""
    sources = wheel.sources()
    users, table = _users(project), wheel.listed_extras(sources)
    return [
        State(
            name=name,
            purpose=each["purpose"],
            present=name in project.extras and all(_folder(project, folder).is_dir() for folder in _folders(each)),
            lines=_lines(sources, name, beside=wheel.below(table, name)),
            packages=tuple(each.get("packages", ())),
            users=tuple(users.get(name, ())),
        )
        for name, each in table.items()
    ]


def shown(found: Sequence[State]) -> Iterator[str]:
    """The lines that `invoke extras` prints."""
    width = max(len(each.name) for each in found)
    yield f"{'extra':{width}}  in vendor/  lines  used by"
    for each in found:
        lines = f"{each.lines:5}" if each.lines else "    -"
        mark = "yes" if each.present else "MISSING" if each.users else "no"
        yield f"{each.name:{width}}  {mark:10}  {lines}  {', '.join(each.users) or '-'}"
        needs = f" Needs {', '.join(map(normal_name, each.packages))}." if each.packages else ""
        yield f"{'':{width}}  {each.purpose}{needs}"
    for each in found:
        if each.users and not each.present:
            yield f"run `invoke extras --add {each.name}`: {each.users[0]} needs it"


def add(project: Project, names: Sequence[str]) -> list[str]:
    """Add extras; returns a sentence for each. Raises: `UsageError` for a name that does not exist."""
    sources = wheel.sources()
    new = [name for name in dict.fromkeys(names) if name not in _known(sources, names) or name not in project.extras]
    before = [*project.extras]
    _carry(project, sources, [*before, *new])
    return [*(_added(sources, name, beside=[*before, *new[:at]]) for at, name in enumerate(new)), *_next(sources, new)]


def remove(project: Project, names: Sequence[str]) -> list[str]:
    """Remove extras; returns a sentence for each.

    Raises: `UsageError` for a name that does not exist, one that is in use, and files that were edited here.
    """
    sources = wheel.sources()
    gone = [name for name in dict.fromkeys(names) if name in _known(sources, names) and name in project.extras]
    users = _users(project)
    for name in gone:
        if users.get(name):
            raise UsageError(f"the extra {name} is in use by {', '.join(users[name])}: remove that code first")
    _carry(project, sources, [name for name in project.extras if name not in gone])
    return [f"removed the extra {name}" for name in gone]


def sync(project: Project) -> list[str]:
    """Make vendor/bonny fit the list in pyproject.toml; returns a sentence for each file that was edited here.

    Raises: `UsageError` when the other files of vendor/bonny are not of the version of these tools.
    """
    if not wheel.fits(project.root / "vendor" / "bonny", extras=False):
        raise UsageError(wheel.UNFIT)
    sources = wheel.sources()
    kept = _carry(project, sources, [name for name in project.extras if _known(sources, project.extras)])
    return [f"vendor/bonny/{name} was edited here, and stays: compare it with the new version" for name in kept]


def _known(sources: Mapping[str, bytes], names: Sequence[str]) -> Sequence[str]:
    """`names`. Raises: `UsageError` for a name that does not exist."""
    table = wheel.listed_extras(sources)
    if unknown := next((name for name in names if name not in table), None):
        raise UsageError(f"there is no extra {unknown!r}: use {', '.join(table)}")
    return names


def _carry(project: Project, sources: Mapping[str, bytes], names: Sequence[str]) -> list[str]:
    """Let the repository carry the extras `names` and no others; returns the files that were edited here."""
    vendored, table = project.root / "vendor" / "bonny", wheel.listed_extras(sources)
    goal, here = wheel.selected(sources, names), wheel.contents(vendored)
    edited = wheel.edited(vendored, sources)
    optional = {folder for each in table.values() for folder in _folders(each)}
    leaving = [name for name in here if name not in goal and name.partition("/")[0] in optional]
    if yours := next((name for name in leaving if name in edited), None):
        raise UsageError(f"vendor/bonny/{yours} was edited or added here, so nothing was changed: move it away first")
    files = {f"vendor/bonny/{name}": data for name, data in goal.items()
             if name not in edited and here.get(name) != data}  # fmt: skip
    records = wheel.records(goal, wheel.version())
    if not wheel.version():  # not delivered: in the template's own repository
        del records[wheel.VERSION]
    files |= {f"vendor/bonny/{name}": data for name, data in records.items()}
    before = (project.root / PROJECT).read_bytes().decode()
    text = before
    for name in names:
        text = with_extra(text, name, table[name].get("packages", ()))
    for name in set(project.extras) - {*names}:
        text = without_extra(text, name, table[name].get("packages", ()))
    if text != before:
        files[PROJECT] = text.encode()
    replaced = dict.fromkeys([*files, *(f"vendor/bonny/{name}" for name in (wheel.CHECKSUMS, *leaving))])
    try:
        with staging(project.root, [*replaced]) as staged:
            for path, data in files.items():
                (staged / path).parent.mkdir(parents=True, exist_ok=True)
                (staged / path).write_bytes(data)
    except OSError as error:
        raise UsageError(f"the extras could not be changed: all is as before ({error})") from error
    for folder in (_folder(project, name) for name in optional):
        for empty in sorted((path for path in folder.rglob("*") if path.is_dir()), reverse=True):
            _remove_empty(empty)
        _remove_empty(folder)
    return [name for name in edited if name in goal]


def _remove_empty(folder: Path) -> None:
    with suppress(OSError):  # not empty, or not there
        for compiled in folder.glob("*.pyc"):
            compiled.unlink()
        folder.rmdir()


def _added(sources: Mapping[str, bytes], name: str, *, beside: Sequence[str]) -> str:
    packages = wheel.listed_extras(sources)[name].get("packages", ())
    needs = f", and {', '.join(map(normal_name, packages))} in the image" if packages else ""
    return f"added the extra {name}: {_lines(sources, name, beside=beside)} lines in vendor/bonny{needs}"


def _next(sources: Mapping[str, bytes], names: Sequence[str]) -> Iterator[str]:
    table = wheel.listed_extras(sources)
    packages = [normal_name(package) for name in names for package in table[name].get("packages", ())]
    if any(find_spec(package.replace("-", "_")) is None for package in packages):
        yield "next: `uv sync` or pip install -e '.[dev]', which installs its packages here"
    if packages:
        yield "next: `invoke lock`, if requirements.txt is there already: the image needs the packages"


def _lines(sources: Mapping[str, bytes], name: str, *, beside: Sequence[str]) -> int:
    """The code lines that the extra adds to a repository with the extras `beside`."""
    more = wheel.selected(sources, (*beside, name)).keys() - wheel.selected(sources, beside).keys()
    return sum(code_lines(sources[name].decode()) for name in more if name.endswith(".py"))


def _folders(extra: Mapping[str, Sequence[str]]) -> Sequence[str]:
    return extra.get("folders", ())


def _folder(project: Project, name: str) -> Path:
    return project.root / "vendor" / "bonny" / name


# --- who uses them ---


def _users(project: Project) -> dict[str, list[str]]:
    """The users of each extra: classes and options of the operator, or else modules that import it."""
    users: dict[str, list[str]] = {}
    try:
        operator = project.load_operator()
    except MissingExtra as error:
        users.setdefault(error.extra, []).append(error.what)
    except ImportError as error:
        if (absent := missing(error)) is None:
            raise
        users.setdefault(absent.extra, []).append(absent.what)
    else:
        for name, user in _of_operator(operator):
            users.setdefault(name, []).append(user)
    by_import: dict[str, list[str]] = {}
    for name, path in imports(project.source):
        by_import.setdefault(name, []).append(path.relative_to(project.root).as_posix())
    return by_import | users


def _of_operator(operator: Operator) -> Iterator[tuple[str, str]]:
    for part in operator.parts:
        yield part.extra, part.__name__
    for declaration in operator.declarations:
        yield declaration.extra, f"the declaration {declaration.name}"
    for hub in operator.converted:
        yield "webhooks", f"the versions of {hub.kind}"
    if operator.deploy.secure_metrics:
        yield "metrics-auth", "Deploy(secure_metrics=True)"
    if operator.tracing is not None:
        yield "otel", "Operator(tracing=...)"
    for task in operator.tasks:
        if task.cron:
            yield "cron", f"task {task.id}"
    for server in operator.servers:
        if getattr(server, "cron", ""):
            yield "cron", server.__name__
