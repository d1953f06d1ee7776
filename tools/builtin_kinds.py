"""Makes `runtime/bonny/builtin_kinds.json`: plural and scope of every kind that a real API server serves by default.

    python -m tools.builtin_kinds                                     # starts a control plane of its own
    python -m tools.builtin_kinds --server URL --token T --ca-file F  # asks a running one, that has no CRDs

Run it when the newest supported Kubernetes minor changes. Kinds that the file has and the server no longer serves are
kept, so that operators on older minors go on; delete them by hand when no supported minor serves them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tools.asked import Server, from_options, lines

TABLE = Path(__file__).resolve().parent.parent / "runtime" / "bonny" / "builtin_kinds.json"
# Aggregated discovery: one request for all groups, stable since Kubernetes 1.30.
ACCEPT = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

Kinds = dict[str, dict[str, list[str]]]


def discovered(document: dict[str, Any]) -> Kinds:
    """The kinds of one APIGroupDiscoveryList: {apiVersion: {kind: [plural, scope]}}."""
    kinds: Kinds = {}
    for group in document["items"]:
        name = group["metadata"].get("name", "")
        for version in group["versions"]:
            api_version = f"{name}/{version['version']}" if name else version["version"]
            for resource in version["resources"]:
                kind = resource["responseKind"]["kind"]
                kinds.setdefault(api_version, {})[kind] = [resource["resource"], resource["scope"]]
    return kinds


def fetch(server: Server) -> Kinds:
    """Ask for all kinds, those of the core group included."""
    return discovered(server.get("/api", accept=ACCEPT)) | discovered(server.get("/apis", accept=ACCEPT))


def render(kinds: Kinds) -> str:
    return lines(
        {
            version: [f'"{kind}": {json.dumps(kinds[version][kind])}' for kind in sorted(kinds[version])]
            for version in kinds
        }
    )


def main() -> None:
    """Write the table."""
    fresh = from_options(__doc__ or "", fetch)
    known: Kinds = json.loads(TABLE.read_text(encoding="utf-8")) if TABLE.exists() else {}
    merged = {version: known.get(version, {}) | fresh.get(version, {}) for version in known.keys() | fresh.keys()}
    TABLE.write_text(render(merged), encoding="utf-8")
    print(f"{TABLE.name}: {sum(map(len, merged.values()))} kinds, {sum(map(len, fresh.values()))} served now")


if __name__ == "__main__":
    main()
