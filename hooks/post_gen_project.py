"""Makes sure that the runtime arrived in `vendor/bonny`, records its checksums, and prints what comes next.

The template holds the runtime as a symbolic link, which zip archives and some clones turn into a text file. Files of
options that were not chosen have empty names and are skipped by cookiecutter; folders that held nothing else go here.
"""

import contextlib
import hashlib
import json
import shutil
import sys
from pathlib import Path
from urllib.parse import unquote

# Not defined by cruft, which always works on a clone: there the link is real. It also renders to compare, so it gets no
# advice: `cruft diff` would show it as part of the difference.
TEMPLATE: str = json.loads(unquote("<< cookiecutter._repo_dir | default('') | string | tojson | urlencode >>"))
VENDORED = Path("vendor", "bonny")
CACHES = ("__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache")

if not (VENDORED / "errors.py").is_file():
    source = Path(TEMPLATE) / "runtime" / "bonny"
    if not (source.is_absolute() and (source / "errors.py").is_file()):
        print(
            "Refused: this copy of the template lost its symbolic links, so vendor/bonny cannot be filled: "
            "clone the template with git (core.symlinks=true) and try again.",
            file=sys.stderr,
        )
        sys.exit(1)
    if VENDORED.is_dir():
        shutil.rmtree(VENDORED)
    else:
        VENDORED.unlink(missing_ok=True)
    shutil.copytree(source, VENDORED)

for cache in CACHES:
    for folder in list(VENDORED.rglob(cache)):
        shutil.rmtree(folder)

# What `invoke update-runtime` compares with, to leave alone what was edited; `sha256sum --check` reads it, too.
checksums = [
    f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(VENDORED).as_posix()}\n"
    for path in sorted(VENDORED.rglob("*"))
    if path.is_file() and path != VENDORED / "CHECKSUMS"
]
(VENDORED / "CHECKSUMS").write_bytes("".join(checksums).encode())

for folder in (Path(".github", "workflows"), Path(".github"), Path(".devcontainer")):
    with contextlib.suppress(OSError):  # not empty, or not there
        folder.rmdir()

if TEMPLATE:
    print("""cd << cookiecutter.operator_slug >> && python3 -m venv .venv && . .venv/bin/activate
pip install -e '.[dev]'
invoke gen-controller Widget widgets --version v1""")
