"""Client: requests to the API server; the names that a user needs: `from bonny.client import NotFound`.

Address and credentials are in `config`, bytes to and from the server in `transport` and `http`, requests in `api`.
"""

from __future__ import annotations

from ..errors import ApiError as ApiError
from .api import Client as Client
from .errors import Conflict as Conflict
from .errors import Forbidden as Forbidden
from .errors import Invalid as Invalid
from .errors import NotFound as NotFound
from .errors import NotLeading as NotLeading
from .errors import NotServed as NotServed
from .errors import Refusal as Refusal
from .errors import ServerError as ServerError
from .errors import Throttled as Throttled
from .errors import Unauthorized as Unauthorized
from .errors import Unreachable as Unreachable
