"""Download: etcd and kube-apiserver from the official envtest archives, which controller-tools publishes on GitHub, and
other programs of Kubernetes, for Linux, from the project's own server.

The index names each archive with its SHA-512, and beside each program lies its own; they are trusted because they come
over HTTPS from those projects themselves.
"""

from __future__ import annotations

import hashlib
import platform
import re
import shutil
import tarfile
import urllib.request
from http.client import HTTPException
from pathlib import Path
from typing import Final
from urllib.error import HTTPError

from .cache import Every, Progress
from .versions import KUBERNETES, SemanticVersion, parse

INDEX: Final = "https://raw.githubusercontent.com/kubernetes-sigs/controller-tools/HEAD/envtest-releases.yaml"
OFFICIAL: Final = "https://dl.k8s.io"
# The programs of the archives that we use.
PROGRAMS: Final = ("etcd", "kube-apiserver")
# For each connection and each read. Without the open Internet the refusal mostly comes at once; silence costs this.
TIMEOUT_SECONDS: Final = 5.0
CHUNK: Final = 2**20
MACHINES: Final = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}

# An entry of the index: three lines of YAML, too few to need a YAML library where only the standard library is sure.
ENTRY: Final = re.compile(
    r"envtest-v(?P<version>\d+\.\d+\.\d+)-(?P<platform>\w+-\w+)\.tar\.gz:\s+"
    r"hash:\s*(?P<sha512>[0-9a-f]{128})\s+selfLink:\s*(?P<url>https?://\S+)"
)


class ArchiveError(Exception):
    """There is no archive for us, or no way to it; the text names the reason, in half a sentence."""


def this_platform() -> str:
    """As the index writes it: `linux-amd64`."""
    machine = platform.machine().lower()
    return f"{platform.system().lower()}-{MACHINES.get(machine, machine)}"


def best_archive(index: str, *, platform: str) -> tuple[SemanticVersion, re.Match[str]]:
    """The archive of our Kubernetes version, else of the newest stable patch of its minor: version, and `ENTRY`."""
    entries = [(parse(entry["version"]), entry) for entry in ENTRY.finditer(index) if entry["platform"] == platform]
    ours = {version: entry for version, entry in entries if version and version[:2] == KUBERNETES[:2]}
    if not ours:
        raise ArchiveError(f"there is none of Kubernetes {KUBERNETES.major}.{KUBERNETES.minor} for {platform}")
    best = KUBERNETES if KUBERNETES in ours else max(ours)
    return best, ours[best]


def fetch(folder: Path, progress: Progress) -> SemanticVersion:
    """Put etcd and kube-apiserver into `folder`; returns the Kubernetes version that they are of.

    Raises: `ArchiveError`, within seconds where there is no open Internet.
    """
    try:
        with urllib.request.urlopen(INDEX, timeout=TIMEOUT_SECONDS) as response:
            index = response.read().decode()
        version, archive = best_archive(index, platform=this_platform())
        file = folder / "envtest.tar.gz"
        progress(f"downloading the official archive of Kubernetes {version} (about 60 MB)")
        if save(archive["url"], file, progress) != archive["sha512"]:
            raise ArchiveError(f"{archive['url']} does not match its checksum")
        extract(file, folder)
    except (OSError, HTTPException, UnicodeDecodeError, tarfile.TarError, KeyError) as error:
        raise _without_archive(error) from error
    return version


def fetch_program(name: str, folder: Path, progress: Progress) -> Path:
    """Put one program of our Kubernetes version into `folder`. Raises: as `fetch`."""
    system, _, machine = this_platform().partition("-")
    url = f"{OFFICIAL}/v{KUBERNETES}/bin/{system}/{machine}/{name}"
    try:
        with urllib.request.urlopen(f"{url}.sha512", timeout=TIMEOUT_SECONDS) as response:  # noqa: S310  (https)
            sha512 = response.read(1024).decode().split()[0]
        progress(f"downloading the official {name} {KUBERNETES} (about 70 MB)")
        if save(url, folder / name, progress) != sha512:
            raise ArchiveError(f"{url} does not match its checksum")
    except (OSError, HTTPException, UnicodeDecodeError, IndexError) as error:
        raise _without_archive(error) from error
    return folder / name


def _without_archive(error: Exception) -> ArchiveError:
    if isinstance(error, HTTPError):
        error.close()  # it is an answer, too
    reason = getattr(error, "reason", error)  # urllib wraps the error of the socket
    return ArchiveError(str(getattr(reason, "strerror", None) or reason))


def save(url: str, file: Path, progress: Progress) -> str:
    """Download `url` into `file`; returns its SHA-512."""
    digest = hashlib.sha512()
    every = Every(progress)
    with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as response, file.open("wb") as out:  # noqa: S310  (https)
        while chunk := response.read(CHUNK):
            digest.update(chunk)
            out.write(chunk)
            every(f"downloading: {out.tell() >> 20} MB")
    return digest.hexdigest()


def extract(file: Path, folder: Path) -> None:
    """Copy our programs out of the archive, by name: nothing else in it touches the disk."""
    with tarfile.open(file) as archive:
        for name in PROGRAMS:
            member = archive.extractfile(f"controller-tools/envtest/{name}")
            if member is None:
                raise ArchiveError(f"the archive holds no file {name}")
            with member, (folder / name).open("wb") as out:
                shutil.copyfileobj(member, out, CHUNK)
