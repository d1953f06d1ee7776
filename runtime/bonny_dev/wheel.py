"""Wheel: packs the developer tools into one file, with the unedited sources of the runtime that they fit.

The types of Kubernetes' kinds, which only type checkers read, go with the tools, as the stub package `bonny-stubs`.

`deliver` calls this module without an environment, so it uses the standard library alone.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import zipfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import IO, Any, Final

CACHES: Final = ("__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache")
# Of vendor/bonny: the version of the wheel that it was delivered with, and the list of added files.
VERSION: Final = "VERSION"
CHECKSUMS: Final = "CHECKSUMS"
EXTRAS: Final = "extras.json"
BASE: Final = "base.zip"
PATTERN: Final = "bonny_dev-*.whl"
UNFIT: Final = (
    "the installed developer tools are of another version than vendor/bonny: run `uv sync`, or "
    "pip install -e '.[dev]', and after `cruft update` also `invoke extras --sync`"
)
UNDELIVERED: Final = (
    "the hooks of the template did not run when this repository was rendered: run "
    "PYTHONPATH=vendor python -m bonny_dev.deliver in its folder, and then `uv sync`, or pip install -e '.[dev]'"
)
# By these the runtime finds parts of the tools without an import of them (`bonny.carried.of_tools`).
ENTRY_POINTS: Final = b"""[bonny.tools]
console = bonny_dev.console_log:console
credentials = bonny_dev.exec_plugin:credentials
"""
_NAME: Final = re.compile(r"bonny_dev-[\w.+]+-py3-none-any\.whl")
_DATE: Final = (1980, 1, 1, 0, 0, 0)  # the first that an archive can hold


def contents(folder: Path) -> dict[str, bytes]:
    """Every file of a package by its path within `folder`, in order, without caches and the records of a delivery."""
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file() and not set(CACHES) & set(path.parts))
    names = {path.relative_to(folder).as_posix(): path for path in paths}
    return {name: path.read_bytes() for name, path in names.items() if name not in (VERSION, CHECKSUMS)}


def delivered(runtime: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files of the runtime that lie in a repository: all but the types."""
    return {name: data for name, data in runtime.items() if not _is_type(name)}


def selected(runtime: Mapping[str, bytes], extras: Collection[str]) -> dict[str, bytes]:
    """The delivered files of a repository with these extras. Raises: `KeyError` for an extra that does not exist."""
    table = listed_extras(runtime)
    kept = {folder for name in extras for folder in table[name].get("folders", ())}
    left_out = {folder for each in table.values() for folder in each.get("folders", ())} - kept
    return {name: data for name, data in delivered(runtime).items() if name.partition("/")[0] not in left_out}


def listed_extras(runtime: Mapping[str, bytes]) -> dict[str, dict[str, Any]]:
    """The table of extras of a runtime, by name."""
    table: dict[str, dict[str, Any]] = json.loads(runtime.get(EXTRAS, b"{}"))
    return table


def below(table: Mapping[str, Mapping[str, Any]], name: str) -> list[str]:
    """The extras whose own folder, the first one, is also a folder of `name`: it is built on them."""
    shared = table[name].get("folders", ())[1:]
    return [other for other, each in table.items() if each.get("folders", ())[:1] and each["folders"][0] in shared]


def _is_type(name: str) -> bool:
    return name.startswith("types/") and name != "types/__init__.py"


def digest(data: bytes) -> str:
    """SHA-256 of a file. A checkout with core.autocrlf edits nothing: its line endings count as the delivered ones."""
    return hashlib.sha256(data.replace(b"\r\n", b"\n")).hexdigest()


def listed(files: Mapping[str, bytes]) -> str:
    """A list of checksums, as `sha256sum --check` reads it."""
    return "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in files.items())


def records(files: Mapping[str, bytes], version: str) -> dict[str, bytes]:
    """The records of a delivery of `files`: VERSION, and CHECKSUMS of the extras that the template does not render.

    cruft updates all that the template renders together with the wheel, which holds it. The other extras are of the
    version before until `invoke extras --sync`, and the wheel of that version is gone.
    """
    table = listed_extras(files).values()
    optional = {folder for each in table for folder in each.get("folders", ())}
    optional -= {folder for each in table if each.get("rendered") for folder in each["folders"]}
    added = {name: data for name, data in files.items() if name.partition("/")[0] in optional}
    return {VERSION: f"{version}\n".encode(), **({CHECKSUMS: listed(added).encode()} if added else {})}


def recorded(vendored: Path) -> dict[str, str]:
    """SHA-256 of the files that CHECKSUMS of `vendored` lists, by name; empty without a list."""
    path = vendored / CHECKSUMS
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines)}


def edited(vendored: Path, base: Mapping[str, bytes]) -> list[str]:
    """The files of `vendored` that are not as they were delivered, and added ones; `base` is that of its wheel."""
    known = {name: {digest(data)} for name, data in base.items()}
    for name, found in recorded(vendored).items():
        known.setdefault(name, set()).add(found)
    here = {name: digest(data) for name, data in contents(vendored).items()}
    return [name for name, found in here.items() if found not in known.get(name, ())]


def pack(tools: Mapping[str, bytes], runtime: Mapping[str, bytes]) -> tuple[str, bytes]:
    """The name and the bytes of the wheel of all files of both packages; the same files make the same bytes.

    Its version is that of the runtime and a digest of all files, so that pip and uv install a wheel of other files.
    """
    number = re.search(rb'^__version__ = "(.+)"$', runtime["__init__.py"], re.MULTILINE)
    sums = hashlib.sha256(f"{listed(tools)}\n{listed(runtime)}".encode()).hexdigest()
    version = f"{number[1].decode() if number else '0'}+{sums[:12]}"
    info = f"bonny_dev-{version}.dist-info"
    files = {f"bonny_dev/{name}": data for name, data in tools.items()}
    # Not compressed by itself: all together it becomes smaller.
    base = {**delivered(runtime), VERSION: f"{version}\n".encode()}
    files[f"bonny_dev/{BASE}"] = _zipped(base, zipfile.ZIP_STORED)
    types = {name: data for name, data in runtime.items() if _is_type(name) and name.endswith(".pyi")}
    files |= {f"bonny-stubs/{name}": data for name, data in types.items()}
    files |= {"bonny-stubs/types/__init__.pyi": b"", "bonny-stubs/py.typed": b"partial\n"}
    files[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: bonny-dev\nVersion: {version}\n".encode()
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: bonny_dev\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files[f"{info}/entry_points.txt"] = ENTRY_POINTS
    digests = {name: base64.urlsafe_b64encode(hashlib.sha256(data).digest()) for name, data in files.items()}
    lines = [f"{name},sha256={digests[name].decode().rstrip('=')},{len(data)}\n" for name, data in files.items()]
    files[f"{info}/RECORD"] = "".join([*lines, f"{info}/RECORD,,\n"]).encode()
    return f"bonny_dev-{version}-py3-none-any.whl", _zipped(files, zipfile.ZIP_DEFLATED)


def with_name(text: str, name: str) -> str:
    """A pyproject.toml that installs the wheel `name`, wherever it installs one."""
    return _NAME.sub(lambda _: name, text)


def version_of(wheel: str) -> str:
    """The version in the name of a wheel."""
    return wheel.split("-")[1]


def base_of(wheel: Path) -> dict[str, bytes]:
    """The sources of the runtime in a wheel. Raises: `OSError`, `KeyError`, `zipfile.BadZipFile`."""
    with zipfile.ZipFile(wheel) as outer:
        return _sources(io.BytesIO(outer.read(f"bonny_dev/{BASE}")))


def sources() -> dict[str, bytes]:
    """The files of the runtime that these tools were delivered with, of all extras.

    In the template's own repository these are the files beside the tools.
    """
    base = Path(__file__).with_name(BASE)
    if not base.is_file():
        return delivered(contents(Path(__file__).parents[1] / "bonny"))
    return _sources(base)


def version() -> str:
    """The version of these tools; empty in the template's own repository."""
    base = Path(__file__).with_name(BASE)
    if not base.is_file():
        return ""
    with zipfile.ZipFile(base) as archive:
        return archive.read(VERSION).decode().strip()


def fits(vendored: Path, *, extras: bool = True) -> bool:
    """Whether these tools were delivered with the runtime in `vendored`; so it is where either has no record of it.

    Without `extras`, the files in CHECKSUMS may be of another version.
    """
    path = vendored / VERSION
    if not (path.is_file() and (here := version())):
        return True
    if path.read_text(encoding="utf-8").strip() != here:
        return False
    known = recorded(vendored) if extras else {}
    files = sources() if known else {}
    return all(name in files and digest(files[name]) == found for name, found in known.items())


def _sources(base: Path | IO[bytes]) -> dict[str, bytes]:
    with zipfile.ZipFile(base) as archive:
        return {name: archive.read(name) for name in archive.namelist() if name != VERSION}


def _zipped(files: Mapping[str, bytes], compression: int) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, _DATE)
            entry.external_attr = 0o100644 * 2**16
            archive.writestr(entry, data, compression, 9)
    return buffer.getvalue()
