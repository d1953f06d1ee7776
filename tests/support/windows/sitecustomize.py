"""Windows' file names, imitated: each Python process that has this folder on its path refuses the names that Windows
refuses, below the folder `WINDOWS_BELOW`, and symbolic links.

It says nothing about other differences of Windows.
"""

import errno
import os
import re
import sys

BELOW = os.environ["WINDOWS_BELOW"] + os.sep
ILLEGAL = re.compile(r'[<>:"|?*\\]|[. ]$|^(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\.|$)', re.IGNORECASE)
PATHS = {"open": 1, "os.mkdir": 1, "os.rename": 2, "os.listdir": 1, "os.scandir": 1}


def refuse(event: str, arguments: tuple[object, ...]) -> None:
    if event == "os.symlink":
        raise PermissionError(errno.EPERM, "symbolic links need a permission on Windows")
    for path in arguments[: PATHS.get(event, 0)]:
        if isinstance(path, str) and path.startswith(BELOW):
            for name in path[len(BELOW) :].split(os.sep):
                if ILLEGAL.search(name):
                    raise OSError(errno.EINVAL, "Windows refuses this name", path)


sys.addaudithook(refuse)
