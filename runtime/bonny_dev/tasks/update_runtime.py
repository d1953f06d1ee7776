"""Update: replaces vendor/bonny and vendor/bonny_dev, both or neither, with another version of the template.

The file CHECKSUMS of each lists what the template delivered, as `sha256sum --check` reads it; what differs was edited.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import shutil
import subprocess
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from bonny.errors import UsageError

from .pyproject import PROJECT, with_requirements

PACKAGES: Final = ("bonny", "bonny_dev")
CHECKSUMS: Final = "CHECKSUMS"
CACHES: Final = ("__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache")
# The abbreviations that cookiecutter and cruft know.
ABBREVIATIONS: Final = {"gh": "https://github.com", "gl": "https://gitlab.com", "bb": "https://bitbucket.org"}
# Of a template nothing else is read.
READ: Final = ("runtime", "CHANGELOG.md", "pyproject.toml")


class Kept(NamedTuple):
    """A file of vendor/ that was edited here and stays; `changed` when the new version has another text for it, too."""

    name: str
    changed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The version before and after, the template it is from, files of vendor/ that were kept, whether packages
    were added to pyproject.toml, sentences about what is left to do by hand, and the new sections of the changelog."""

    before: str
    after: str
    origin: str
    kept: tuple[Kept, ...]
    added: bool
    left: tuple[str, ...]
    changelog: str


def update_runtime(root: Path, *, ref: str = "", origin: str = "", force: bool = False) -> Report:
    """Replace both packages of the repository at `root`, and add the packages that they need to pyproject.toml.

    `origin` is the folder or the URL of the template (default: the one in .cruft.json or [tool.bonny]). `ref` is a
    tag, a branch or a commit; by default a folder is taken as it is, and of a URL its newest tag. `force` also replaces
    files of vendor/ that were edited here.
    Guarantees: everything is staged in vendor/.bonny-* first and then renamed into place; after a failure the
    repository is as before. A kill between two renames can leave one package old and the other new, or missing: until
    the next update, what was replaced is in vendor/.bonny-*/old; git has it, too, as far as it was committed.
    Raises: `UsageError` when a package is missing, or cannot be read or written; when git fails.
    """
    present = {package: _vendored(root / "vendor" / package, force=force) for package in PACKAGES}
    with _fetched(root, ref=ref, origin=origin) as (template, source):
        runtime = template / "runtime"
        for package in PACKAGES:
            if not (runtime / package / "__init__.py").is_file():
                raise UsageError(
                    f"{source} has no runtime/{package}: name the template's own folder or URL by --from, and a "
                    "version that has it by --ref"
                )
        delivered = {package: checksums(runtime / package) for package in PACKAGES}
        before = _version(root / "vendor" / "bonny")
        groups = tomllib.loads(_text(template / "pyproject.toml")).get("dependency-groups", {})
        project = _project(root / PROJECT)
        needed, left = with_requirements(project, groups.get("runtime", ()))
        added, replaced = needed != project, [f"vendor/{package}" for package in PACKAGES]
        changelog = _news(_text(template / "CHANGELOG.md"), before=before, after=_version(runtime / "bonny"))
        without_caches = shutil.ignore_patterns(*CACHES)
        try:
            with _staging(root, [*replaced, *[PROJECT] * added]) as staged:
                for package, (_, edited) in present.items():
                    shutil.copytree(runtime / package, staged / "vendor" / package, ignore=without_caches)
                    lines = [f"{digest}  {name}\n" for name, digest in delivered[package].items()]
                    (staged / "vendor" / package / CHECKSUMS).write_bytes("".join(lines).encode())
                    for name in edited:
                        _copy(root, staged, f"vendor/{package}/{name}")
                if added:
                    _copy(root, staged, PROJECT)  # with its permissions
                    (staged / PROJECT).write_bytes(needed.encode())
        except OSError as error:
            # copytree goes on after an error and raises all of them; the first says enough.
            why = error.args[0][0][-1] if isinstance(error, shutil.Error) else error
            raise UsageError(
                f"vendor/bonny and vendor/bonny_dev could not be replaced: both are as before ({why})"
            ) from error
        return Report(
            before=before,
            after=_version(root / "vendor" / "bonny"),
            origin=source,
            kept=tuple(
                Kept(f"{package}/{name}", delivered[package].get(name) != recorded.get(name))
                for package, (recorded, edited) in present.items()
                for name in edited
            ),
            added=added,
            left=tuple(f"{PROJECT}: {sentence}" for sentence in left),
            changelog=changelog,
        )


def checksums(folder: Path) -> dict[str, str]:
    """SHA-256 of every file, by its path within `folder`; without caches and the list itself.

    A checkout with core.autocrlf edits nothing: its line endings count as the delivered ones.
    """
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file() and not set(CACHES) & set(path.parts))
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes().replace(b"\r\n", b"\n")).hexdigest()
        for path in paths
        if path != folder / CHECKSUMS
    }


def _vendored(folder: Path, *, force: bool) -> tuple[Mapping[str, str], Sequence[str]]:
    """The recorded checksums of a package in the repository, and the files that differ from them."""
    if folder.is_symlink() or not (folder / "__init__.py").is_file():
        raise UsageError(f"{folder} is not a vendored package: render the template again, or restore it from git")
    path = folder / CHECKSUMS
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    recorded = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    if not recorded and not force:
        raise UsageError(f"{path} is missing, so edited files cannot be found: with --force all files are replaced")
    present = {} if force else checksums(folder)
    return recorded, [name for name, digest in present.items() if recorded.get(name) != digest]


# --- both or neither --------------------------------------------------------------------------------------------------


@contextmanager
def _staging(root: Path, names: Sequence[str]) -> Iterator[Path]:
    """A folder to write `names` in, which are paths within `root`; when the body succeeds, they replace those there."""
    for stale in (root / "vendor").glob(".bonny-*"):  # of an update that was killed
        shutil.rmtree(stale)
    folder = root / "vendor" / f".bonny-{secrets.token_hex(4)}"
    new, old = folder / "new", folder / "old"
    try:
        yield new
        _rename_all(root, new, old, names)
    finally:
        # Where a rename could not be undone, the only copy is in `old`, and stays.
        if all((root / name).exists() or not (old / name).exists() for name in names):
            shutil.rmtree(folder, ignore_errors=True)


def _rename_all(root: Path, new: Path, old: Path, names: Sequence[str]) -> None:
    """Rename from `root` to `old` and from `new` to `root`. A rename that fails undoes those before it."""
    with ExitStack() as undo:
        for name in names:
            (old / name).parent.mkdir(parents=True, exist_ok=True)
            if (root / name).exists():
                (root / name).rename(old / name)
                undo.callback((old / name).rename, root / name)
            (new / name).rename(root / name)
            undo.callback((root / name).rename, new / name)
        undo.pop_all()


def _project(path: Path) -> str:
    """With the line endings as they are."""
    try:
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read ({error}): correct it and try again") from error


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""


def _copy(source: Path, target: Path, name: str) -> None:
    (target / name).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source / name, target / name)


# --- versions ---------------------------------------------------------------------------------------------------------


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


# --- where it comes from ----------------------------------------------------------------------------------------------


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
        commits = [name for name in names if _git("rev-parse", "-q", "--verify", name, cwd=clone, ok=1)]
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
            'where the template is was not recorded: say --from, or add template = "https://..." to [tool.bonny] in '
            "pyproject.toml"
        ) from None


def _without_token(text: str) -> str:
    """`text` for people and logs, without the token that a URL may hold."""
    return re.sub(r"(?<=://)[^/\s]*@", "", text)


def _git(*arguments: str, cwd: Path | None = None, ok: int = 0) -> str:
    """Output of git; empty when it ends with the code `ok`. Raises: `UsageError` for every other code but 0."""
    try:
        # Delivered as the checksums say, whatever this machine does with line endings.
        command = ["git", "-c", "core.autocrlf=false", *arguments]
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise UsageError("git is not installed here: install it, or name a folder by --from and no --ref") from error
    if done.returncode not in (0, ok):
        why = (done.stderr.strip().splitlines() or ["it does not say why"])[-1]
        raise UsageError(f"git {arguments[0]} failed: {_without_token(why)}")
    return "" if done.returncode else done.stdout
