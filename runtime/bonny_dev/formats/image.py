"""Image: the parts of an image reference, which charts and overlays set one by one."""

from __future__ import annotations

from typing import NamedTuple


class Image(NamedTuple):
    """`registry.example.com/widgets-operator:1.0.0` in parts; tag and digest may be empty."""

    repository: str
    tag: str
    digest: str

    @classmethod
    def of(cls, reference: str) -> Image:
        """The parts of a reference that `check_image` accepts."""
        name, _, digest = reference.partition("@")
        repository, colon, tag = name.rpartition(":")
        if not colon or "/" in tag:  # the port of a registry
            repository, tag = name, ""
        return cls(repository, tag, digest)
