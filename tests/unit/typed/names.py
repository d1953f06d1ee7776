"""Names of the packages: a misspelt one is an error, not `Any`."""

import bonny
import bonny.api
from bonny import Axn, Controller, Typo  # error: attr-defined, reportAttributeAccessIssue
from bonny_dev import testing
from bonny_dev.sandbox import Sandbox, Sandbux  # error: attr-defined, reportAttributeAccessIssue
from bonny_dev.testing import axn, handel  # error: attr-defined, reportAttributeAccessIssue

bonny.Operator(name="widgets", group="example.com", controllers=[])
bonny.Operater()  # error: attr-defined, reportAttributeAccessIssue
bonny.api.Fjeld()  # error: attr-defined, reportAttributeAccessIssue
testing.handel()  # error: attr-defined, reportAttributeAccessIssue
