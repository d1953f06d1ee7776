"""The list and watch protocol of an API server, as plain values: objects, a log of events, pages of a snapshot.

No server is imitated: nothing listens, and nothing answers by itself. Property tests take its parts and decide how much
of them arrives, and when.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from bonny.core.watch import Reply
from bonny.resource import Resource
from tests.support.core import line, page, status, thing

TYPE = {"apiVersion": "example.com/v1", "kind": "Thing"}
EXPIRED = msgspec.json.encode(status(410, "Expired"))


# Far more than any test writes, so that revisions after it are new ones.
BUMP = 1_000_000


@dataclass(frozen=True)
class Backup:
    """All that a server had at one moment."""

    version: int
    objects: dict[str, Resource]
    outside: dict[str, Resource]


@dataclass
class Server:
    """What an API server would say about one kind, to somebody who may see only a selection of it."""

    version: int = 1
    compacted: int = 0
    objects: dict[str, Resource] = field(default_factory=dict)
    outside: dict[str, Resource] = field(default_factory=dict)
    """What exists and is not in the selection."""

    log: list[tuple[int, str, Resource]] = field(default_factory=list)
    snapshots: dict[str, list[Resource]] = field(default_factory=dict)
    """What continue tokens stand for: the rest of a list."""

    born: int = 0
    last: dict[str, Resource] = field(default_factory=dict)
    """The last state of each UID."""

    def existing(self) -> dict[str, Resource]:
        """Everything, selected or not."""
        return {**self.objects, **self.outside}

    def uids(self) -> set[str]:
        return {thing["metadata"]["uid"] for thing in self.existing().values()}

    def write(self, name: str) -> None:
        """Create, or change the content."""
        self.version += 1
        if name in self.outside:
            changed = self._changed(self.outside[name], spec=self.version)
            changed["metadata"]["generation"] += 1
            self.outside[name] = changed
            return
        kind = "MODIFIED" if name in self.objects else "ADDED"
        if kind == "ADDED":
            self.born += 1
        uid = self.objects[name]["metadata"]["uid"] if name in self.objects else f"{name}-{self.born}"
        before = self.objects[name]["metadata"]["generation"] if name in self.objects else 0
        made = thing(name, uid=uid, version=self.version, generation=before + 1, **TYPE, spec=self.version)
        self._happened(kind, made)

    def write_status(self, name: str) -> str:
        """Change nothing but the status of what exists; returns the version made."""
        self.version += 1
        if name in self.outside:
            self.outside[name] = self._changed(self.outside[name], status=self.version)
        else:
            self._happened("MODIFIED", self._changed(self.objects[name], status=self.version))
        return str(self.version)

    def delete(self, name: str) -> None:
        self.version += 1
        if self.outside.pop(name, None) is None:
            self._happened("DELETED", self._changed(self.objects.pop(name)))

    def move(self, name: str) -> None:
        """Into the selection, or out of it: to who follows the selection it is new, or gone."""
        self.version += 1
        if name in self.outside:
            self._happened("ADDED", self._changed(self.outside.pop(name)))
        else:
            self.outside[name] = self._changed(self.objects.pop(name))
            self._happened("DELETED", self.outside[name])

    def _changed(self, thing: Resource, **content: int) -> Resource:
        return {**thing, **content, "metadata": {**thing["metadata"], "resourceVersion": str(self.version)}}

    def _happened(self, kind: str, resource: Resource) -> None:
        if kind != "DELETED":
            self.objects[resource["metadata"]["name"]] = resource
        self.last[resource["metadata"]["uid"]] = resource
        self.log.append((self.version, kind, resource))

    def back_up(self) -> Backup:
        return Backup(self.version, dict(self.objects), dict(self.outside))

    def restore(self, backup: Backup, *, bump: bool) -> None:
        """From a backup; `bump` raises the revisions, as etcd's manual advises. Earlier history is gone."""
        self.objects, self.outside = dict(backup.objects), dict(backup.outside)
        self.version = self.version + BUMP if bump else backup.version
        # The events before it are not in the restored server's memory.
        self.compact()
        self.last |= {thing["metadata"]["uid"]: thing for thing in self.existing().values()}

    def compact(self) -> None:
        """Forget the history, and the snapshots that tokens stand for."""
        self.compacted = self.version
        self.log.clear()
        self.snapshots.clear()

    def list(self, limit: int, token: str) -> Reply:
        if token and token not in self.snapshots:
            return Reply(410, EXPIRED)
        things = self.snapshots.pop(token) if token else list(self.objects.values())
        version = token.partition(".")[0] or str(self.version)
        rest = things[limit:]
        if rest:
            following = f"{version}.{len(self.snapshots)}.{len(rest)}"
            self.snapshots[following] = rest
            return Reply(200, page(*things[:limit], version=version, token=following))
        return Reply(200, page(*things, version=version))

    def events(self, version: int) -> list[bytes]:
        """What a watch from `version` brings, up to now."""
        if version < self.compacted:
            return [line("ERROR", status(410, "Expired"))]
        return [line(kind, resource) for at, kind, resource in self.log if at > version]
