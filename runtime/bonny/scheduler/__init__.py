"""Custom schedulers: choose nodes for pods.

You need it where kube-scheduler's own rules cannot find the best node. A scheduler gets the pod and the nodes as views,
mappings that are decoded when they are read. It binds the pod to its choice; whether the pod fits there is the question
of its `check`, for which the extra `filters` has the filters of kube-scheduler.
"""

from .binding import Binding as Binding
from .nodes import Check as Check
from .nodes import Fit as Fit
from .nodes import Nodes as Nodes
from .scheduler import Choice as Choice
from .scheduler import Scheduler as Scheduler
from .views import NodeView as NodeView
from .views import PodView as PodView
