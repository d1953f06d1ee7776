"""Staging: replaces files and folders of a repository, all of them or none."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path


@contextmanager
def staging(root: Path, names: Sequence[str]) -> Iterator[Path]:
    """A folder to write `names` in, which are paths within `root`; when the body succeeds, they replace what is there.

    A name that was not written is removed.
    """
    for stale in (root / "vendor").glob(".bonny-*"):  # of an update that was killed
        shutil.rmtree(stale)
    folder = root / "vendor" / f".bonny-{secrets.token_hex(4)}"
    new, old = folder / "new", folder / "old"
    try:
        yield new
        _rename_all(root, new, old, names)
    except BaseException:
        # Where a rename could not be undone, the only copy is in `old`, and stays.
        if all((root / name).exists() or not (old / name).exists() for name in names):
            shutil.rmtree(folder, ignore_errors=True)
        raise
    shutil.rmtree(folder, ignore_errors=True)


def _rename_all(root: Path, new: Path, old: Path, names: Sequence[str]) -> None:
    """Rename from `root` to `old` and from `new` to `root`. A rename that fails undoes those before it."""
    with ExitStack() as undo:
        for name in names:
            (old / name).parent.mkdir(parents=True, exist_ok=True)
            if (root / name).exists():
                (root / name).rename(old / name)
                undo.callback((old / name).rename, root / name)
            if (new / name).exists():
                if not (root / name).parent.is_dir():
                    (root / name).parent.mkdir(parents=True)
                    undo.callback((root / name).parent.rmdir)
                (new / name).rename(root / name)
                undo.callback((root / name).rename, new / name)
        undo.pop_all()
