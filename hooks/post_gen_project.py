"""Fills `vendor/`: the runtime with the extras in use, and the tools as a wheel; prints what comes next.

The template holds both as symbolic links, which zip archives and some clones turn into a text file. Files of
options that were not chosen have empty names and are skipped by cookiecutter; folders that held nothing else go here.
"""

import contextlib
import json
import shutil
import sys
from pathlib import Path
from urllib.parse import unquote

# Not defined by cruft, which always works on a clone: there the link is real. It also renders to compare, so it gets no
# advice: `cruft diff` would show it as part of the difference.
TEMPLATE: str = json.loads(unquote("<< cookiecutter._repo_dir | default('') | string | tojson | urlencode >>"))
VENDOR = Path("vendor")
RUNTIME, TOOLS = VENDOR / "bonny", VENDOR / "bonny_dev"

for vendored in (RUNTIME, TOOLS):
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

sys.dont_write_bytecode = True
sys.path.insert(0, str(VENDOR))

from bonny_dev.deliver import deliver  # noqa: E402

deliver(Path())

for folder in (Path(".github", "workflows"), Path(".github"), Path(".devcontainer")):
    with contextlib.suppress(OSError):  # not empty, or not there
        folder.rmdir()

if TEMPLATE:
    print("""cd << cookiecutter.operator_slug >> && git init && git add . && git commit -m "Render the template"
uv sync && . .venv/bin/activate   # without uv: python3 -m venv .venv && . .venv/bin/activate && pip install -e '.[dev]'
invoke gen-controller Widget widgets --version v1
invoke run-local --sandbox --apply-samples""")
