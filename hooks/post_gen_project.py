"""Makes sure that `vendor/bonny` and `vendor/bonny_dev` arrived, records their checksums, and prints what comes next.

The template holds both as symbolic links, which zip archives and some clones turn into a text file. Files of
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
VENDORED = (Path("vendor", "bonny"), Path("vendor", "bonny_dev"))
CACHES = ("__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache")

for vendored in VENDORED:
    if not (vendored / "__init__.py").is_file():
        source = Path(TEMPLATE) / "runtime" / vendored.name
        if not (source.is_absolute() and (source / "__init__.py").is_file()):
            print(
                f"Refused: this copy of the template lost its symbolic links, so {vendored.as_posix()} cannot be "
                "filled: clone the template with git (core.symlinks=true) and try again.",
                file=sys.stderr,
            )
            sys.exit(1)
        if vendored.is_dir():
            shutil.rmtree(vendored)
        else:
            vendored.unlink(missing_ok=True)
        shutil.copytree(source, vendored)

    for cache in CACHES:
        for folder in list(vendored.rglob(cache)):
            shutil.rmtree(folder)

    # `invoke update-runtime` compares with these, to keep files that were edited; `sha256sum --check` reads them, too.
    checksums = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(vendored).as_posix()}\n"
        for path in sorted(vendored.rglob("*"))
        if path.is_file() and path != vendored / "CHECKSUMS"
    ]
    (vendored / "CHECKSUMS").write_bytes("".join(checksums).encode())

for folder in (Path(".github", "workflows"), Path(".github"), Path(".devcontainer")):
    with contextlib.suppress(OSError):  # not empty, or not there
        folder.rmdir()

if TEMPLATE:
    print("""cd << cookiecutter.operator_slug >> && git init && git add . && git commit -m "Render the template"
uv sync && . .venv/bin/activate   # without uv: python3 -m venv .venv && . .venv/bin/activate && pip install -e '.[dev]'
invoke gen-controller Widget widgets --version v1
invoke run-local --sandbox --apply-samples""")
