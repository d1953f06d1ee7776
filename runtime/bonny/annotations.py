"""Annotations: what classes and functions declare, without a need for the types that they name.

On Python 3.14 a type that cannot be evaluated yet is a `ForwardRef`.
"""

from __future__ import annotations

import inspect
import sys
from functools import partial

if sys.version_info >= (3, 14):
    from annotationlib import Format

    annotations_of = partial(inspect.get_annotations, format=Format.FORWARDREF)
    signature_of = partial(inspect.signature, annotation_format=Format.FORWARDREF)
else:
    annotations_of, signature_of = inspect.get_annotations, inspect.signature
