"""What Windows refuses, imitated: each Python process that has this folder on its path refuses the names that Windows
refuses, below the folder `WINDOWS_BELOW`, and symbolic links; to bonny and its tools, modules of Unix are absent.

It says nothing about other differences of Windows.
"""

import builtins
import errno
import os
import re
import sys

BELOW = os.environ["WINDOWS_BELOW"] + os.sep
ILLEGAL = re.compile(r'[<>:"|?*\\]|[. ]$|^(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|$)', re.IGNORECASE)
PATHS = {"open": 1, "os.mkdir": 1, "os.rename": 2, "os.listdir": 1, "os.scandir": 1}
UNIX = {"fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"}
imported = builtins.__import__


def refuse(event: str, arguments: tuple[object, ...]) -> None:
    if event == "os.symlink":
        raise PermissionError(errno.EPERM, "symbolic links need a permission on Windows")
    for path in arguments[: PATHS.get(event, 0)]:
        if isinstance(path, str) and path.startswith(BELOW):
            names = path.removeprefix(BELOW).split(os.sep)  # noqa: PTH206  the names as they are, a final dot included
            if any(map(ILLEGAL.search, names)):
                raise OSError(errno.EINVAL, "Windows refuses this name", path)


def absent(name, globals=None, locals=None, fromlist=(), level=0):  # type: ignore[no-untyped-def]  # noqa: A002  as the built-in one
    importer = str((globals or {}).get("__name__", "")).partition(".")[0]
    if level == 0 and name in UNIX and importer in ("bonny", "bonny_dev"):
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    return imported(name, globals, locals, fromlist, level)


builtins.__import__ = absent
sys.addaudithook(refuse)
