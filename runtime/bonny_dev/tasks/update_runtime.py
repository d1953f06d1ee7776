"""Update: replaces vendor/bonny and the wheel of the developer tools, both or neither, with another version.

The wheel holds the files of vendor/bonny as they were delivered: a file that differs was edited, and edits
and the changes of the new version are merged.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
import tomllib
import zipfile
from collections.abc import Container, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, NamedTuple

from bonny.errors import UsageError

from ..staging import staging
from ..wheel import (
    PATTERN,
    VERSION,
    base_of,
    contents,
    digest,
    edited,
    listed_extras,
    pack,
    recorded,
    records,
    selected,
    version_of,
    with_name,
)
from .pyproject import PROJECT, with_extra, with_requirements

# The abbreviations that cookiecutter and cruft know.
ABBREVIATIONS: Final = {"gh": "https://github.com", "gl": "https://gitlab.com", "bb": "https://bitbucket.org"}
# Of a template nothing else is read.
READ: Final = ("runtime", "CHANGELOG.md", "pyproject.toml")
SHOWN: Final = 20
# Written this way, so that no template that holds this file begins here.
MARK: Final = "<" * 7
OUTCOMES: Final = {
    "kept": "kept",
    "merged": "merged with the new version",
    "conflicts": f"conflicts, choose between the lines at {MARK} and >>>>>>>",
}


class Edited(NamedTuple):
    """A file of vendor/bonny that was edited here: `kept` as it is, `merged` with what the new version changed, or with
    conflicts between the two marks of git, which are left to the user."""

    name: str
    outcome: Literal["kept", "merged", "conflicts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The version before and after, the template it is from, files of vendor/bonny that the new version adds, changes
    or removes, files that were edited here, sentences about what is left to do by hand, and the new sections of the
    changelog."""

    before: str
    after: str
    origin: str
    changed: tuple[str, ...]
    edited: tuple[Edited, ...]
    left: tuple[str, ...]
    changelog: str


def update_runtime(root: Path, *, ref: str = "", origin: str = "", force: bool = False) -> Report:
    """Replace runtime and developer tools of the repository at `root`, and their lines in pyproject.toml.

    `origin` is the folder or the URL of the template (default: the one in .cruft.json or [tool.bonny]). `ref` is a
    tag, a branch or a commit; by default a folder is taken as it is, and of a URL its newest tag. `force` replaces
    files that were edited here, too.
    Guarantees: everything is staged in vendor/.bonny-* first and then renamed into place; after a failure the
    repository is as before. A kill between two renames can leave a part old, new or missing: until the next update,
    what was replaced is in vendor/.bonny-*/old; git has it, too, as far as it was committed.
    Raises: `UsageError` when a part is missing, or cannot be read or written; when git fails.
    """
    vendored, wheel = root / "vendor" / "bonny", _wheel(root)
    _check(vendored, wheel, force=force)
    base = {} if force else _base(wheel)
    changed_here = [] if force else edited(vendored, base)
    with _fetched(root, ref=ref, origin=origin) as (template, source):
        runtime = template / "runtime"
        for package in ("bonny", "bonny_dev"):
            if not (runtime / package / "__init__.py").is_file():
                raise UsageError(
                    f"{source} has no runtime/{package}: name the template's own folder or URL by --from, and a "
                    "version that has it by --ref"
                )
        sources = contents(runtime / "bonny")
        extras, table = _extras(root), listed_extras(sources)
        if unknown := next((each for each in extras if each not in table), None):
            raise UsageError(f"{source} has no extra {unknown!r}: remove it by `invoke extras --remove {unknown}`")
        new = selected(sources, extras)
        merged = {name: _merged(name, base, (vendored / name).read_bytes(), new) for name in changed_here}
        name, packed = pack(contents(runtime / "bonny_dev"), sources)
        groups = tomllib.loads(_text(template / "pyproject.toml")).get("dependency-groups", {})
        project, left = with_requirements(_project(root / PROJECT), groups.get("runtime", ()))
        for each in extras:
            project = with_extra(project, each, table[each].get("packages", ()))
        if wheel.name not in project:
            left.append(f'write "bonny-dev @ {{root:uri}}/vendor/{name}" into the extra dev')
        before, digests = _version(vendored), {each: digest(data) for each, data in new.items()}
        here = {each: data for each, data in contents(vendored).items() if force or each in base}
        before_files = {each: digest(base.get(each, data)) for each, data in here.items()} | recorded(vendored)
        changelog = _news(_text(template / "CHANGELOG.md"), before=before, after=_version(runtime / "bonny"))
        files = {f"vendor/bonny/{each}": data for each, data in (new | {n: d for n, (d, _) in merged.items()}).items()}
        files |= {f"vendor/bonny/{each}": data for each, data in records(new, version_of(name)).items()}
        files |= {f"vendor/{name}": packed, PROJECT: with_name(project, name).encode()}
        try:
            with staging(
                root, [*dict.fromkeys(("vendor/bonny", f"vendor/{wheel.name}", f"vendor/{name}", PROJECT))]
            ) as staged:
                for path, data in files.items():
                    (staged / path).parent.mkdir(parents=True, exist_ok=True)
                    (staged / path).write_bytes(data)
                shutil.copymode(root / PROJECT, staged / PROJECT)
        except OSError as error:
            raise UsageError(f"the runtime could not be replaced: all is as before ({error})") from error
        return Report(
            before=before,
            after=_version(vendored),
            origin=source,
            changed=tuple(sorted({each for each, _ in before_files.items() ^ digests.items()})),
            edited=tuple(Edited(each, outcome) for each, (_, outcome) in merged.items()),
            left=tuple(f"{PROJECT}: {sentence}" for sentence in left),
            changelog=changelog,
        )


def _wheel(root: Path) -> Path:
    found = sorted((root / "vendor").glob(PATTERN))
    if len(found) != 1:
        raise UsageError(
            f"{root / 'vendor'} holds {len(found)} wheels {PATTERN} and should hold one: restore it from git, or "
            "render the template again"
        )
    return found[0]


def _base(wheel: Path) -> Mapping[str, bytes]:
    try:
        return base_of(wheel)
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise UsageError(f"{wheel} cannot be read ({error}): restore it from git") from error


def _check(folder: Path, wheel: Path, *, force: bool) -> None:
    if folder.is_symlink() or not (folder / "__init__.py").is_file():
        raise UsageError(f"{folder} is not a vendored package: render the template again, or restore it from git")
    if not force and _text(folder / VERSION).strip() != version_of(wheel.name):
        raise UsageError(
            f"{folder} was not delivered with {wheel.name}, so edited files cannot be found: restore both from git, or "
            "replace all files with --force"
        )


def _merged(
    name: str, base: Mapping[str, bytes], ours: bytes, new: Mapping[str, bytes]
) -> tuple[bytes, Literal["kept", "merged", "conflicts"]]:
    """An edited file together with the changes of the new version.

    A file that only one of the two has stays as it is here.
    """
    before, theirs = base.get(name), new.get(name)
    if theirs is None or theirs == before:
        return ours, "kept"
    with tempfile.TemporaryDirectory(prefix="bonny-merge-") as folder:
        paths = [Path(folder, label) for label in ("yours", "before", "new")]
        for path, data in zip(paths, (ours.replace(b"\r\n", b"\n"), before or b"", theirs), strict=True):
            path.write_bytes(data)
        # Its exit code is the number of conflicts, at most 127.
        command = ("merge-file", "--diff3", *(f"-L{path.name}" for path in paths), *map(str, paths))
        _git(*command, ok=range(1, 128))
        merged = paths[0].read_bytes()
    return merged, "conflicts" if f"{MARK} yours".encode() in merged else "merged"


# --- files of the repository ---


def _project(path: Path) -> str:
    """With the line endings as they are."""
    try:
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read ({error}): correct it and try again") from error


def _extras(root: Path) -> tuple[str, ...]:
    table = tomllib.loads(_project(root / PROJECT))
    return tuple(table.get("tool", {}).get("bonny", {}).get("extras", ()))


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


# --- versions ---


def _version(runtime: Path) -> str:
    version = re.search(r'^__version__ = "(.+)"$', (runtime / "__init__.py").read_text(encoding="utf-8"), re.MULTILINE)
    return version[1] if version else "unknown"


def _news(changelog: str, *, before: str, after: str) -> str:
    """The changelog's sections that are newer than `before`; going back, that of `after`."""
    sections = re.split(r"^(?=## )", changelog, flags=re.MULTILINE)[1:]
    names = [section.partition("]")[0].removeprefix("## [") for section in sections]
    if before in names:
        return "".join(sections[: names.index(before)]).rstrip()
    if before == after and names:  # before the first release
        return sections[0].rstrip()
    return "".join(section for name, section in zip(names, sections, strict=True) if name == after).rstrip()


# --- where it comes from ---


@contextmanager
def _fetched(root: Path, *, ref: str, origin: str) -> Iterator[tuple[Path, str]]:
    """A folder with what is `READ` of the template, and the template's address for people."""
    origin = origin or _recorded_origin(root)
    name, _, rest = origin.partition(":")
    origin = f"{ABBREVIATIONS[name]}/{rest}.git" if name in ABBREVIATIONS else origin
    for option, text in (("--ref", ref), ("--from", origin)):
        if text.startswith("-"):
            raise UsageError(f"{option} is {text!r}: it cannot begin with a dash")
    folder = Path(origin).expanduser().absolute()
    if folder.is_dir() and not ref:
        yield folder, origin
        return
    with tempfile.TemporaryDirectory(prefix="bonny-update-") as temporary:
        clone, public = Path(temporary), _without_token(origin)
        _git("clone", "--quiet", "--no-checkout", "--", str(folder) if folder.is_dir() else origin, str(clone))
        tags = _git("tag", "--list", "v*", "--sort=-version:refname", cwd=clone).split()
        # A release candidate is taken only if it is named.
        ref = ref or next((tag for tag in tags if re.fullmatch(r"v\d+(\.\d+)*", tag)), "HEAD")
        names = (ref, f"origin/{ref}")
        commits = [name for name in names if _git("rev-parse", "-q", "--verify", name, cwd=clone, ok=(1,))]
        if not commits:
            raise UsageError(f"{public} has no tag, branch or commit {ref!r}: name another one by --ref")
        # Some systems do not allow the names of the template's other folders.
        if there := _git("ls-tree", "--name-only", commits[0], *READ, cwd=clone).split():
            _git("checkout", "--quiet", commits[0], "--", *there, cwd=clone)
        yield clone, f"{ref} of {public}"


def _recorded_origin(root: Path) -> str:
    """The template's address as cruft recorded it, or else as the template did."""
    try:
        if (root / ".cruft.json").is_file():
            return str(json.loads((root / ".cruft.json").read_text(encoding="utf-8"))["template"])
        return str(tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["bonny"]["template"])
    except (OSError, ValueError, KeyError, TypeError):
        raise UsageError(
            'where the template is was not recorded: give --from, or add template = "https://..." to [tool.bonny] in '
            "pyproject.toml"
        ) from None


def _without_token(text: str) -> str:
    """`text` for people and logs, without the token that a URL may hold."""
    return re.sub(r"(?<=://)[^/\s]*@", "", text)


def _git(*arguments: str, cwd: Path | None = None, ok: Container[int] = ()) -> str:
    """Output of git; empty when it ends with a code in `ok`. Raises: `UsageError` for every other code but 0."""
    try:
        # Delivered as in the checksums, also where this machine changes line endings.
        command = ["git", "-c", "core.autocrlf=false", *arguments]
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise UsageError("git is not installed here: install it, or name a folder by --from and no --ref") from error
    if done.returncode and done.returncode not in ok:
        why = (done.stderr.strip().splitlines() or ["git printed no reason"])[-1]
        raise UsageError(f"git {arguments[0]} failed: {_without_token(why)}")
    return "" if done.returncode else done.stdout
