"""Portable: writes the template as a zip whose names are legal on Windows, too.

    python -m tools.portable [--ref v0.2.0] [--out build]

Windows refuses `<` and `>` in names, and the folder that cookiecutter renders has the marks of template code in its
name. The archive has other marks, in names and in files alike, and renders the same bytes. It holds the files that
cookiecutter reads, with the runtime and the tools in place of the two links.
"""

from __future__ import annotations

import argparse
import io
import json
import posixpath
import re
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from jinja2 import Environment

__all__ = ["MARKS", "archived", "main", "translated"]

ROOT: Final = Path(__file__).resolve().parent.parent
FOLDER: Final = "<<cookiecutter.operator_slug>>"
READ: Final = ("cookiecutter.json", "hooks", FOLDER, "runtime")
COPIED: Final = f"{FOLDER}/vendor/"
# Legal in names on Windows; a file that holds one of them already is refused.
MARKS: Final = {
    "variable_start_string": "@{",
    "variable_end_string": "}@",
    "block_start_string": "@%",
    "block_end_string": "%@",
    "comment_start_string": "@#",
    "comment_end_string": "#@",
}
# The tokens of Jinja that are marks, and not text or code between them.
TOKENS: Final = tuple(f"{kind}_{end}" for kind in ("variable", "block", "raw", "comment") for end in ("begin", "end"))
# The time of every file, so that a commit has one archive: the first that a zip can hold.
TIME: Final = (1980, 1, 1, 0, 0, 0)


class Refused(Exception):
    """The archive cannot be made. The text is one sentence with the reason and the remedy."""


def translated(text: str, before: Mapping[str, str], name: str) -> str:
    """`text` of the file or path `name` with `MARKS` in place of the marks `before`, read as Jinja reads it.

    Raises: Refused, if one of `MARKS` is in it already.
    """
    environment = Environment(**before, keep_trailing_newline=True)  # type: ignore[arg-type]
    parts = []
    for _, kind, value in environment.lex(text):
        if kind in TOKENS:
            for mark, text_of in MARKS.items():
                value = value.replace(before[mark], text_of)  # noqa: PLW2901
        elif found := next((mark for mark in MARKS.values() if mark in value), ""):
            raise Refused(f"{name} holds {found!r}, a mark of the archive: write it in another way")
        parts.append(value)
    return "".join(parts)


def archived(root: Path, ref: str) -> tuple[str, bytes]:
    """The name and the bytes of the archive of commit `ref` in the repository at `root`. Raises: Refused."""
    done = subprocess.run(["git", "archive", "--format=tar", ref, *READ], cwd=root, capture_output=True, check=False)
    if done.returncode:
        raise Refused(f"git archive failed: {' '.join(done.stderr.decode(errors='replace').split())}")
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as tar:
        files = dict(_files(tar))
    version = re.search(rb'^__version__ = "(.+)"$', files[f"{COPIED}bonny/__init__.py"][0], re.MULTILINE)
    title = f"bonny-template-{version[1].decode() if version else 'unknown'}"
    settings = json.loads(files["cookiecutter.json"][0])["_jinja2_env_vars"]
    before = {mark: settings[mark] for mark in MARKS}
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo(f"{title}/", TIME), b"")  # cookiecutter wants to see the folder first
        for name, (data, mode) in sorted(files.items()):
            path, content = translated(name, before, name), data
            if name == "cookiecutter.json":
                content = _questions(data.decode(), before).encode()
            elif not name.startswith(COPIED):
                content = translated(data.decode(), before, name).encode()
            info = zipfile.ZipInfo(f"{title}/{path}", TIME)
            info.compress_type, info.external_attr = zipfile.ZIP_DEFLATED, (mode | 0o100000) << 16
            archive.writestr(info, content)
    return f"{title}.zip", written.getvalue()


def _files(tar: tarfile.TarFile) -> Iterator[tuple[str, tuple[bytes, int]]]:
    """The files of the archive and their modes; a link to a folder stands for its files."""
    members = [member for member in tar.getmembers() if member.isfile()]
    links = {
        posixpath.normpath(posixpath.join(posixpath.dirname(link.name), link.linkname)): link.name
        for link in tar.getmembers()
        if link.issym()
    }
    for member in members:
        content = tar.extractfile(member)
        assert content is not None
        target = next((folder for folder in links if member.name.startswith(f"{folder}/")), None)
        name = member.name if target is None else links[target] + member.name[len(target) :]
        yield name, (content.read(), member.mode)


def _questions(text: str, before: Mapping[str, str]) -> str:
    """cookiecutter.json, whose marks stand in its values and as settings."""
    whole = json.loads(text)
    settings = whole.pop("_jinja2_env_vars")
    plain = {
        name: translated(value, before, name) if isinstance(value, str) else value for name, value in whole.items()
    }
    return json.dumps({**plain, "_jinja2_env_vars": settings | MARKS}, indent=2, ensure_ascii=False) + "\n"


def main(arguments: list[str], root: Path = ROOT) -> int:
    parser = argparse.ArgumentParser(description="Write the template as a zip for Windows.")
    parser.add_argument("--ref", default="HEAD", help="a tag, a branch or a commit")
    parser.add_argument("--out", default="build", help="the folder to write to")
    given = parser.parse_args(arguments)
    try:
        name, data = archived(root, given.ref)
    except Refused as refused:
        print(refused, file=sys.stderr)
        return 2
    path = Path(given.out, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
