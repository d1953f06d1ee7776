"""CRD: writes CustomResourceDefinitions from version classes, and refuses those that the API server would refuse.

    from bonny_dev.crd import check_object, schema_of

You need it to see the schema of a version, and to check an object without a server.
"""

from .objects import check_object as check_object
from .schema import schema_of as schema_of
