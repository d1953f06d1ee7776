"""Custom schedulers: choose nodes for pods, with the filters and scores of kube-scheduler.

You need it where kube-scheduler's own rules cannot say which node is the best one. A scheduler gets the pod and the
nodes as views, mappings with the parts that matter already decoded.
"""

from .binding import Binding as Binding
from .fits import fits as fits
from .nodes import Nodes as Nodes
from .scheduler import Choice as Choice
from .scheduler import Scheduler as Scheduler
from .score import balanced as balanced
from .score import least_allocated as least_allocated
from .score import most_allocated as most_allocated
from .score import spread as spread
from .views import NodeView as NodeView
from .views import PodView as PodView
