"""Types: the objects of Kubernetes as TypedDicts, so that editors and type checkers know their fields.

    if TYPE_CHECKING:
        from bonny.types.apps_v1 import Deployment

Each file has the types of one apiVersion: `core_v1` is `v1`, `rbac_v1` is `rbac.authorization.k8s.io/v1`. They cost
nothing at run time, where objects are plain mappings.
"""

raise ImportError("bonny.types is for type checkers: import it below `if TYPE_CHECKING:`", name=__name__)
