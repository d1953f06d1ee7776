"""Webhooks: admission and conversion, answered by every replica of the operator.

You need it for rules and defaults that neither a schema nor a policy can express (`bonny.policies`), and for
versions of a kind whose fields differ. Only operators that have one of the two load its server.
"""

from .admission import Admission
from .review import Denied, Review, User

__all__ = ["Admission", "Denied", "Review", "User"]
