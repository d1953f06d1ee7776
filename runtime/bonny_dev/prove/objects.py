"""Objects: the objects of a sample in the API server during a life, and all that the operator wrote."""

from __future__ import annotations

from collections.abc import Iterator

from bonny.client.api import MERGE_PATCH
from bonny.resource import Resource

from ..sandbox.admin import Admin
from .external import External
from .points import API, PATH, is_step
from .state import NAMESPACE, Fields, State, alike, fields_of
from .traffic import Traffic
from .variants import Sample


class Objects:
    """The objects of one life, in `namespace`; `service` has the records outside of Kubernetes."""

    def __init__(self, sandbox: Admin, traffic: Traffic, service: External | None) -> None:
        self._sandbox, self._traffic, self._service = sandbox, traffic, service
        self.namespace = ""
        self._sample: Sample
        self._uids: dict[str, str] = {}
        self._gone: set[str] = set()

    def renew(self, namespace: str, sample: Sample) -> None:
        """Begin with another life."""
        self.namespace, self._sample, self._uids, self._gone = namespace, sample, {}, set()
        if self._service:
            self._service.reset()

    # --- the subjects of the sample ---

    def applied(self, live: Resource) -> None:
        """Note the UID of a subject that was applied: it is shown as one word in each life."""
        uid, name = live["metadata"]["uid"], live["metadata"]["name"]
        for known in [known for known, word in self._uids.items() if word == f"(UID of {name})" and known != uid]:
            self._uids[known] = f"(UID of an earlier {name})"
        self._uids[uid] = f"(UID of {name})"

    def delete_subjects(self) -> str:
        """Returns: the resource version at which the last one waits for its finalizers; empty if there is none."""
        version = ""
        for each in self._sample.subjects:
            live = self.subject(each)
            if live is not None:
                self._gone.add(live["metadata"]["uid"])
                answer = self._sandbox.request("DELETE", self.subject_path(each)).body
                version = answer.get("metadata", {}).get("resourceVersion", "")
        return version

    def subject_path(self, each: Resource) -> str:
        """The path of a subject."""
        name = each["metadata"]["name"]
        return self._sandbox.path_of(each["apiVersion"], each["kind"], namespace=self.namespace, name=name)

    def subject(self, each: Resource) -> Resource | None:
        """A subject as it is now; None if it is not there."""
        return self._sandbox.get(each["apiVersion"], each["kind"], each["metadata"]["name"], namespace=self.namespace)

    def subjects(self) -> list[Resource | None]:
        """All subjects as they are now."""
        return [self.subject(each) for each in self._sample.subjects]

    def subjects_gone(self) -> bool:
        """Whether each subject that was deleted is gone."""
        return all(live is None or live["metadata"]["uid"] not in self._gone for live in self.subjects())

    def version(self) -> str:
        """The resource version of the state now."""
        first = self._sample.subjects[0]
        path = self._sandbox.path_of(first["apiVersion"], first["kind"], namespace=self.namespace)
        return str(self._sandbox.request("GET", path).body["metadata"]["resourceVersion"])

    # --- the state ---

    def _words(self) -> dict[str, str]:
        return {**self._uids, self.namespace: NAMESPACE}

    def state(self) -> State:
        """The state now; objects that lost their owners are deleted first, as by Kubernetes' garbage collector."""
        state: State = {}
        for resource in self.collected():
            label = alike(f"{resource['kind']} {resource['metadata']['name']}", self._words())
            state[label] = fields_of(resource, words=self._words())
        for path, document in dict(self._service.records if self._service else {}).items():
            fields: Fields = fields_of({"metadata": {}, "document": document}, words=self._words())
            state[alike(f"record {path}", self._words())] = fields
        return state

    def collected(self) -> list[Resource]:
        """The objects that are left when those without owners are deleted."""
        live = {each["metadata"]["uid"] for each in self.subjects() if each is not None}
        for resource in list(self._items()) if self._gone - live else []:
            owners = resource["metadata"].get("ownerReferences", [])
            kept = [owner for owner in owners if owner["uid"] not in self._gone - live]
            if owners and not kept:
                self._gone.add(resource["metadata"]["uid"])
                self._sandbox.request("DELETE", resource["path"], {"propagationPolicy": "Background"})
            elif len(kept) < len(owners):
                patch = {"metadata": {"ownerReferences": kept, "uid": resource["metadata"]["uid"]}}
                self._sandbox.request("PATCH", resource["path"], patch, content_type=MERGE_PATCH)
        return [{name: value for name, value in each.items() if name != "path"} for each in self._items()]

    def _items(self) -> Iterator[Resource]:
        """The objects that the operator wrote, and all others of their kinds in the namespace, with their paths."""
        written: dict[str, set[str]] = {}
        for each in self._sample.subjects:
            path = self._sandbox.path_of(each["apiVersion"], each["kind"], namespace=self.namespace)
            written.setdefault(path, set()).add(each["metadata"]["name"])
        for server, request in self._traffic.requests():
            match = PATH.fullmatch(request.path)
            if server == API and is_step(request) and match:
                end = match.start("name") - 1 if match["name"] else len(request.path)
                written.setdefault(request.path[:end], set()).add(match["name"] or "")
        for collection, names in written.items():
            inside = f"/namespaces/{self.namespace}/" in collection
            answer = self._sandbox.request("GET", collection)
            if answer.status != 200:
                continue
            for item in answer.body["items"]:
                name = item["metadata"]["name"]
                if name != "kube-root-ca.crt" and (inside or name in names):
                    kind = answer.body["kind"].removesuffix("List")
                    yield {"kind": kind, **item, "path": f"{collection}/{name}"}

    def clean(self) -> None:
        """Delete the objects that a life left, so that the next life does not see them."""
        self.delete_subjects()
        for resource in self._items():
            if resource["metadata"].get("finalizers"):
                patch = {"metadata": {"finalizers": None}}
                self._sandbox.request("PATCH", resource["path"], patch, content_type=MERGE_PATCH)
            self._sandbox.request("DELETE", resource["path"], {"gracePeriodSeconds": 0})
