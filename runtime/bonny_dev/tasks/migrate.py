"""Migrate: rewrites the stored objects of a kind in its storage version, so that an older version can be removed.

You need it after the storage version changed, and again before the old version leaves the CustomResourceDefinition:
docs/how-to/change-the-stored-version.md has the steps.

Two traces of an old version stay in each object. It is stored in that version until its next write. And its
managedFields name the version in which each field manager wrote: after that version has left the CRD, the API server
answers every server-side apply of the object with 500 (kubernetes/kubernetes#111937).

It keeps no state of its own. Run again after an interruption, it continues: the API server does not store a patch that
changes nothing.
RBAC of the person: get customresourcedefinitions, patch customresourcedefinitions/status; list, get and patch of the
kind.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from bonny.client import Client, Conflict, Forbidden, Invalid, NotFound
from bonny.client.config import Cluster
from bonny.client.pages import pages
from bonny.errors import InvalidObject, UsageError
from bonny.kinds import Kind
from bonny.resource import Resource, key_of

from ..install import CRD, read_each_version, served_kind
from .managed_fields import ANYTHING, fitting, relabelled

# At most 100 objects a second: controllers and users are served meanwhile, and a webhook may convert each object.
AT_ONCE: Final = 10
SECONDS: Final = 0.1
# With several API servers, each one learns of a new storage version by a watch; nothing shows when all of them have.
SETTLE_SECONDS: Final = 3.0
# Each try fails only if another client wrote the object since it was read.
TRIES: Final = 5
BAR: Final = 30
# Erases the line of a terminal: ECMA-48, "erase in line".
CLEAR: Final = "\r\033[K"


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """The state of a CustomResourceDefinition, and the versions that its objects may keep."""

    name: str
    generation: int
    stored: list[str]
    """`status.storedVersions`."""

    kind: Kind
    """The metadata of the objects, in a version that is served."""

    target: str
    """`group/version` of the storage version."""

    schema: Resource
    """Of the storage version."""

    kept: frozenset[str]
    """The `group/version`s that entries of managedFields may keep."""

    @property
    def rewrites(self) -> bool:
        """Whether an object may be stored in another version than the storage version."""
        return self.stored != [self.target.rpartition("/")[2]]

    def goes(self, entry: Resource) -> bool:
        """Whether the version of an entry of managedFields is going away, or gone."""
        return entry["apiVersion"] not in self.kept

    def described(self, entry: Resource) -> str:
        """An entry of managedFields in the words of a person."""
        whole = fitting(entry["fieldsV1"], self.schema) == entry["fieldsV1"]
        where = f"{entry['operation']} of {entry.get('subresource') or 'the object'} by {entry.get('manager')}"
        return f"{where} in {entry['apiVersion']}{'' if whole else ', without fields that the storage version lacks'}"


async def migrate(cluster: Cluster, declared: Resource, *, removed: Sequence[str], dry_run: bool) -> bool:
    """Rewrite all objects of the CRD `declared` in its storage version, then set `status.storedVersions` to it.

    managedFields of versions that are in `removed`, or no longer in the CRD, are relabelled.
    Guarantees: `status.storedVersions` changes only after every object was rewritten, and only while the CRD is still
    the same. With `dry_run` nothing changes.
    Returns: whether every object was rewritten; objects that a policy or a webhook refuses are printed.
    Raises: `UsageError` if the CRD of the cluster does not fit; `ApiError`, also if a served version cannot be read.
    """
    async with Client(cluster, user_agent="bonny-migrate") as client:
        work = await _prepared(client, declared, removed)
        total = await _survey(client, work)
        if dry_run or not (total or work.rewrites):
            print("dry run: nothing was changed" if dry_run else "nothing to do", flush=True)
        elif refused := await _rewrite(client, work, total):
            print(f"objects refused: {refused}; change them or the policy, and run this again", flush=True)
            return False
        elif work.rewrites:
            await _record(client, work)
        return True


async def _prepared(client: Client, declared: Resource, removed: Sequence[str]) -> Migration:
    name, group = declared["metadata"]["name"], declared["spec"]["group"]
    crd = await client.get(CRD, name)
    versions = {version["name"]: version for version in crd["spec"]["versions"]}
    wanted = next(version["name"] for version in declared["spec"]["versions"] if version["storage"])
    if not versions.get(wanted, {}).get("storage"):
        raise UsageError(f"{wanted} is the storage version of {name} in the code only: run `invoke install` first")
    if wrong := {*removed} - (versions.keys() - {wanted}):
        raise UsageError(f"--remove-version {min(wrong)}: {name} has no such version beside its storage version")
    kind = replace(served_kind(crd), metadata_only=True)
    await read_each_version(client, crd)
    schema = versions[wanted]["schema"]["openAPIV3Schema"]
    return Migration(
        name=name,
        generation=crd["metadata"]["generation"],
        stored=crd["status"]["storedVersions"],
        kind=kind,
        target=f"{group}/{wanted}",
        schema={"properties": {**schema.get("properties", {}), "metadata": ANYTHING}},
        kept=frozenset(f"{group}/{version}" for version in versions.keys() - {*removed}),
    )


async def _batches(client: Client, work: Migration) -> AsyncIterator[list[Resource]]:
    """The metadata of all objects to write, some at a time."""
    async for page in pages(client, work.kind):
        try:
            found = [item.decode() for item in page.items]
        except InvalidObject as error:
            raise UsageError(f"{error}, and run this again") from None
        chosen = [each for each in found if work.rewrites or any(map(work.goes, _managed(each)))]
        for start in range(0, len(chosen), AT_ONCE):
            yield chosen[start : start + AT_ONCE]


async def _survey(client: Client, work: Migration) -> int:
    """Print the steps to do, and return the number of objects to write."""
    total, entries = 0, Counter[str]()
    async for batch in _batches(client, work):
        total += len(batch)
        entries.update(work.described(entry) for each in batch for entry in _managed(each) if work.goes(entry))
    print(f"{work.name}: stored versions: {', '.join(work.stored)}; objects to write: {total}", flush=True)
    for text, count in sorted(entries.items()):
        print(f"  managedFields to relabel as {work.target}: {text} ({count})", flush=True)
    return total


async def _rewrite(client: Client, work: Migration, total: int) -> int:
    """Write all objects that need it; returns how many were refused."""
    bar = sys.stdout.isatty()
    await asyncio.sleep(SETTLE_SECONDS)
    done, refused = 0, 0
    async for batch in _batches(client, work):
        *texts, _ = await asyncio.gather(*(_write(client, work, each) for each in batch), asyncio.sleep(SECONDS, ""))
        for text in filter(None, texts):
            print(f"{CLEAR if bar else ''}refused: {text}", flush=True)
        done, refused = done + len(batch), refused + sum(map(bool, texts))
        if bar:
            print(f"{CLEAR}[{'#' * (BAR * done // max(total, done)):<{BAR}}] {done} of {total}", end="", flush=True)
    print(f"{CLEAR if bar else ''}objects written: {done - refused}", flush=True)
    return refused


async def _write(client: Client, work: Migration, resource: Resource, tries: int = TRIES) -> str:
    """Write one object; returns the error if it is refused, else an empty text."""
    key, going = key_of(resource), any(map(work.goes, _managed(resource)))
    # Without an object of this version there is nothing to do: the same name with another UID has another version.
    patch: Resource = {"resourceVersion": resource["metadata"]["resourceVersion"]}
    if going:
        # An empty list would keep the managedFields as they are; an empty entry removes all.
        patch["managedFields"] = relabelled(_managed(resource), work.goes, work.target, work.schema) or [{}]
    with suppress(NotFound):
        try:
            await client.merge_patch(work.kind, key, {"metadata": patch})
        except Conflict as error:
            if going and tries == 1:
                return str(error)
            if going:  # the object was stored in the storage version since, but its managedFields are as they were
                return await _write(client, work, await client.get(work.kind, key), tries - 1)
        except (Forbidden, Invalid) as error:
            if "missing rule" in str(error):  # RBAC refuses the other objects, too
                raise
            return str(error)
    return ""


async def _record(client: Client, work: Migration) -> None:
    """Set `status.storedVersions`. Raises: `UsageError` if the CRD has changed."""
    crd = await client.get(CRD, work.name)
    if crd["metadata"]["generation"] != work.generation:
        raise UsageError(f"{work.name} was changed meanwhile, perhaps its storage version: run this again")
    stored = {"storedVersions": [work.target.rpartition("/")[2]]}
    patch = {"metadata": {"resourceVersion": crd["metadata"]["resourceVersion"]}, "status": stored}
    await client.merge_patch(CRD, work.name, patch, subresource="status")
    print(f"{work.name}: the only stored version is {stored['storedVersions'][0]}", flush=True)


def _managed(resource: Resource) -> list[Resource]:
    return list(resource["metadata"].get("managedFields", ()))
