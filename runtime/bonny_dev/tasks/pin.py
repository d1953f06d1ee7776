"""Pin: adds to the tags of actions and images the commit or digest that they stand for now.

The owner of a tag can move it; a commit or a digest cannot be moved. The tag stays beside it for readers, and for the
bot that proposes newer versions. Pinned tags are left as they are.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bonny.errors import UsageError

ACTION: Final = re.compile(r"(uses: +)([\w.-]+/[\w.-]+)((?:/[\w./-]+)?)@(?![0-9a-f]{40}$)([\w.-]+)$", re.MULTILINE)
IMAGE: Final = re.compile(r"^(FROM +|\s*-? *(?:image|name): +)([\w.-]+(?:[/:][\w.-]+)*:[\w.-]+)(?=\s|$)", re.MULTILINE)


def pin(root: Path) -> Iterator[str]:
    """Rewrite the Dockerfile and the files of the CI in `root`; yields the names of the changed files.

    Needs the network, git for actions, and docker with buildx for images.
    Raises: `UsageError` when a tag cannot be resolved; files before that one stay rewritten.
    """
    for path in (root / "Dockerfile", root / ".gitlab-ci.yml", *sorted(root.glob(".github/workflows/*.yml"))):
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            pinned = IMAGE.sub(_image, ACTION.sub(_action, text))
            if pinned != text:
                path.write_text(pinned, encoding="utf-8", newline="\n")
                yield path.relative_to(root).as_posix()


def _action(match: re.Match[str]) -> str:
    start, repository, folder, tag = match.groups()
    ref = f"refs/tags/{tag}"
    # An annotated tag has a second line, which ends in ^{}: the commit that it marks.
    refs = _output("git", "ls-remote", f"https://github.com/{repository}", ref, f"{ref}^{{}}")
    commits = re.findall("^[0-9a-f]{40}", refs, re.MULTILINE)
    if not commits:
        raise UsageError(f"{repository} has no tag {tag}: correct it in the workflow, and try again")
    return f"{start}{repository}{folder}@{commits[-1]} # {tag}"


def _image(match: re.Match[str]) -> str:
    digest = _output("docker", "buildx", "imagetools", "inspect", match[2], "--format", "{{.Manifest.Digest}}").strip()
    return f"{match[0]}@{digest}"


def _output(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except FileNotFoundError as error:
        raise UsageError(f"{command[0]} is not installed here: install it, and try again") from error
    except subprocess.CalledProcessError as error:
        raise UsageError(
            f"`{' '.join(command)}` failed, is there a network? {error.stderr.strip().partition(chr(10))[0]}"
        ) from error
