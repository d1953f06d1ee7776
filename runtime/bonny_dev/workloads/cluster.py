"""Cluster: plays kubelets, the default scheduler and a storage provisioner, from streams of this runtime.

A change of a pod, claim, volume, node or rule starts a round, and so does the time at which a behaviour goes on. A
round looks at all of them and writes what is missing. Each write names the version that it was decided on: one that a
newer change overtook is refused, and the event of that change starts the next round.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from bonny.client.api import JSON, Client
from bonny.client.errors import Conflict, NotFound, Refusal, ServerError
from bonny.client.request import ApiRequest, path_of
from bonny.core.watch import WatchOptions
from bonny.engine.stream import Stream
from bonny.errors import ApiError, UsageError
from bonny.kinds import Kind
from bonny.resource import Key, Resource, key_of

from . import node_choice, pods, volumes
from .behaviours import OF_CLAIMS, RULES_NAME, RULES_NAMESPACE, Behaviour, Rule, Simulate, asked_for, decode, parse
from .controllers import Woken

POD: Final = Kind("v1", "Pod")
CLAIM: Final = Kind("v1", "PersistentVolumeClaim")
VOLUME: Final = Kind("v1", "PersistentVolume")
NODE: Final = Kind("v1", "Node")
NAMESPACE: Final = Kind("v1", "Namespace")
CONFIG_MAP: Final = Kind("v1", "ConfigMap")
STORAGE_CLASS: Final = Kind("storage.k8s.io/v1", "StorageClass")
RULES: Final = Kind("v1", "ConfigMap", namespace=RULES_NAMESPACE, field_selector=f"metadata.name={RULES_NAME}")
# After a failed round; the API server may be restarting.
RETRY_SECONDS: Final = 0.5
# After a write that the API server refused, say because a quota is used up.
REFUSED_SECONDS: Final = 5.0
# Changes mostly come in groups: one round for several of them.
GATHER_SECONDS: Final = 0.02
AT_ONCE: Final = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
FIRST_ADDRESS: Final = 0x0A_F4_00_02  # 10.244.0.2

log = logging.getLogger("bonny_dev.workloads.cluster")


class Cluster(Woken):
    """The kubelets, the default scheduler and the provisioner of one sandbox."""

    def __init__(self, client: Client) -> None:
        super().__init__()
        self._client = client
        kinds = (POD, CLAIM, VOLUME, NODE, RULES)
        self._streams = {kind: Stream(client, kind, namespace=None, options=WatchOptions()) for kind in kinds}
        self._addresses: dict[str, str] = {}
        """IP addresses by UID of the pod."""

        self._crashed: dict[str, int] = {}
        """Pods that were made to crash, by UID of their Job."""

        self._refused = False
        """Whether the API server refused a write of this round."""

    async def prepare(self) -> None:
        """Create the first Node and the default StorageClass where there is none."""
        if not await self._client.list(NODE):
            node = node_choice.first_node()
            await self._client.create(NODE, node)
            await self._client.merge_patch(NODE, node_choice.NODE, {"status": node["status"]}, subresource="status")
        if not await self._client.list(STORAGE_CLASS):
            await self._client.create(STORAGE_CLASS, volumes.storage_class())

    async def run(self, synced: asyncio.Event) -> None:
        """Play until cancelled; `synced` is set when everything that exists was looked at once."""
        async with asyncio.TaskGroup() as group:
            for stream in self._streams.values():
                stream.subscribe(self)
                group.create_task(stream.run(), name=str(stream))
            await asyncio.gather(*(stream.wait_until_synced() for stream in self._streams.values()))
            while True:
                self._changed.clear()
                try:
                    again = await self._round(datetime.now(UTC))
                    synced.set()
                except ApiError as error:
                    log.warning("a round failed: %s", error)
                    again = RETRY_SECONDS
                with suppress(TimeoutError):
                    async with asyncio.timeout(again):
                        await self._changed.wait()
                    await asyncio.sleep(GATHER_SECONDS)

    # --- one round ---

    async def _round(self, now: datetime) -> float | None:
        """Look at everything once; returns the seconds to the next round that is due without a change."""
        # First the objects, then the rules: a rule that was made before a pod is there when the pod is looked at.
        seen_pods, claims = self._objects(POD), self._objects(CLAIM)
        rules = await self._rules()
        waits = [await self._claim(claim, rules, now) for claim in claims]
        for volume in filter(volumes.is_released, self._objects(VOLUME)):
            await self._attempt(self._client.delete(VOLUME, key_of(volume), uid=volume["metadata"]["uid"]))
        live = {pod["metadata"]["uid"] for pod in seen_pods}
        self._addresses = {uid: address for uid, address in self._addresses.items() if uid in live}
        waits += [await self._pod(pod, rules, now) for pod in seen_pods]
        if self._refused:
            waits.append(REFUSED_SECONDS)
            self._refused = False
        return min((each for each in waits if each is not None), default=None)

    def _objects(self, kind: Kind) -> list[Resource]:
        return [item.decode() for item in self._streams[kind].store.items()]

    async def _rules(self) -> list[Rule]:
        try:
            return decode(await self._client.get(CONFIG_MAP, Key(RULES_NAMESPACE, RULES_NAME)))
        except NotFound:
            return []

    async def _claim(self, claim: Resource, rules: Iterable[Rule], now: datetime) -> float | None:
        """Make the volume that a claim waits for; returns the seconds for which it is to stay pending."""
        volume = volumes.volume_for(claim)
        if volume is None:
            return None
        asked = asked_for("persistentvolumeclaims", claim["metadata"], rules)
        try:
            behaviour = parse(asked, allowed=OF_CLAIMS) if asked else None
        except UsageError as error:
            log.warning("PersistentVolumeClaim %s stays pending: %s", key_of(claim), error)
            return None
        if (left := pending_seconds(claim, behaviour, now)) != 0.0:
            return left
        await self._attempt(self._client.create(VOLUME, volume))
        return None

    async def _pod(self, pod: Resource, rules: Iterable[Rule], now: datetime) -> float | None:
        """Do what is due for a pod; returns the seconds to its next change."""
        if pod["metadata"].get("deletionTimestamp"):
            await self._delete(pod, now)
            return None
        if pods.is_final(pod):
            return None
        behaviour, mistake = None, ""
        try:
            asked = asked_for("pods", pod["metadata"], rules)
            behaviour = parse(asked) if asked else None
        except UsageError as error:
            mistake = str(error)
        if not pod["spec"].get("nodeName"):
            return await self._schedule(pod, behaviour, mistake, now)
        if mistake:
            await self._set_status(pod, pods.refused(pod, mistake, now=now))
            return None
        owner = next((each["uid"] for each in pod["metadata"].get("ownerReferences", ())), pod["metadata"]["uid"])
        step = pods.on_node(pod, behaviour, now=now, address=self._address_of(pod), crashed=self._crashed.get(owner, 0))
        written = await self._set_status(pod, step.status)
        if written and step.status["phase"] == "Failed" and behaviour and behaviour.simulate is Simulate.CRASH:
            self._crashed[owner] = self._crashed.get(owner, 0) + 1
        return step.again

    async def _schedule(self, pod: Resource, behaviour: Behaviour | None, mistake: str, now: datetime) -> float | None:
        """Bind a pod of the default scheduler, or say in its status why it waits."""
        if not node_choice.waits_for_a_node(pod):
            return None
        if mistake:
            await self._set_status(pod, pods.unschedulable(pod, mistake, now=now))
            return None
        if (left := pending_seconds(pod, behaviour, now)) != 0.0:
            await self._set_status(pod, pods.unschedulable(pod, "pending is simulated", now=now))
            return left
        namespace, nodes = pod["metadata"]["namespace"], self._objects(NODE)
        node = node_choice.choose(pod, nodes)
        if node is None:
            message = f"0/{len(nodes)} nodes are available: none fits nodeSelector, or is not cordoned"
            await self._set_status(pod, pods.unschedulable(pod, message, now=now))
            return None
        if unbound := [name for name in node_choice.claims_of(pod) if not await self._is_bound(namespace, name, node)]:
            message = f"pod has unbound PersistentVolumeClaims: {', '.join(unbound)}"
            await self._set_status(pod, pods.unschedulable(pod, message, now=now))
            return None
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        metadata = {name: pod["metadata"][name] for name in ("namespace", "name", "uid")}
        binding = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
        await self._attempt(self._client.create(POD, binding, subresource="binding"))
        return None

    async def _is_bound(self, namespace: str, name: str, node: str) -> bool:
        """Whether a claim has its volume; one that waits for the scheduler's choice of a node gets it."""
        item = self._streams[CLAIM].store.get(Key(namespace, name))
        if item is None:
            return False
        claim = item.decode()
        if claim.get("status", {}).get("phase") == "Bound":
            return True
        if volumes.SELECTED_NODE not in (claim["metadata"].get("annotations") or {}):
            chosen = {"metadata": {"annotations": {volumes.SELECTED_NODE: node}}}
            await self._attempt(self._client.merge_patch(CLAIM, key_of(claim), chosen))
        return False

    async def _delete(self, pod: Resource, now: datetime) -> None:
        """End a pod that is being deleted, as a kubelet does when the containers have ended."""
        key = key_of(pod)
        if pod["metadata"].get("deletionGracePeriodSeconds") != 0:
            body = {**AT_ONCE, "preconditions": {"uid": pod["metadata"]["uid"]}}
            request = ApiRequest(
                "DELETE",
                path_of(POD, key.namespace, key.name),
                headers={"Content-Type": JSON},
                body=msgspec.json.encode(body),
            )
            await self._client.exchange(request)
        elif not pods.is_final(pod) and pod["spec"].get("nodeName"):
            # Only finalizers keep it. The Job controller takes its own away once the pod has ended.
            await self._set_status(pod, pods.killed(pod, now=now))

    async def _set_status(self, pod: Resource, status: Mapping[str, Any]) -> bool:
        """Write a status that is not there yet; returns whether it was written."""
        if not pods.differs(pod, status):
            return False
        version = {"resourceVersion": pod["metadata"]["resourceVersion"]}
        patch = {"metadata": version, "status": status}
        return await self._attempt(self._client.merge_patch(POD, key_of(pod), patch, subresource="status"))

    def _address_of(self, pod: Resource) -> str:
        """An address that no other pod has."""
        uid = pod["metadata"]["uid"]
        if uid not in self._addresses:
            live = (each.get("status", {}).get("podIP") for each in self._objects(POD))
            self._addresses[uid] = next(free_addresses({*self._addresses.values(), *filter(None, live)}))
        return self._addresses[uid]

    async def _attempt(self, request: Any) -> bool:
        """Await a write; returns whether it was done. A newer change of the object starts another round."""
        try:
            await request
        except (Conflict, NotFound):
            return False
        except ServerError:
            raise
        except Refusal as error:
            # One object must not hold up the others.
            log.warning("refused: %s", error.whole_message)
            self._refused = True
            return False
        return True


def pending_seconds(resource: Mapping[str, Any], behaviour: Behaviour | None, now: datetime) -> float | None:
    """For how long a behaviour keeps an object pending: 0 for not at all, None for ever."""
    if behaviour is None or behaviour.simulate is not Simulate.PENDING:
        return 0.0
    if behaviour.limit is None:
        return None
    # The creation is rounded down: so long it surely is.
    age = (now - pods.parse_time(resource["metadata"]["creationTimestamp"])).total_seconds() - 1.0
    return max(behaviour.limit - age, 0.0)


def free_addresses(taken: Iterable[str]) -> Iterator[str]:
    """The addresses of 10.244.0.0/16 that are not taken."""
    used = set(taken)
    for number in range(FIRST_ADDRESS, FIRST_ADDRESS + 0xFF00):
        address = ".".join(str(part) for part in number.to_bytes(4, "big"))
        if address not in used:
            yield address
