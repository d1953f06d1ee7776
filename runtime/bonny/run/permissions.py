"""Permissions: a running operator checks which of the permissions that it needs are missing, and reports them.

A missing permission is logged with the rule to add, and listed by /readyz, until it is granted. The check delays
nothing: a request without its permission fails, is reported, and is tried again.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from typing import Final

from ..client.api import Client
from ..client.errors import Forbidden, NotFound
from ..errors import ApiError, OptionError, UsageError
from ..resource import Resource
from .rbac import CLUSTER, Permission, as_rules, permissions
from .reviews import refused

# Soon at first, so that an added rule is noticed at once; with growing waits afterwards.
AGAIN_SECONDS: Final = 10.0
LONGEST_WAIT_SECONDS: Final = 300.0

log = logging.getLogger("bonny.run.permissions")


class PermissionCheck:
    """`needs` returns the rules by namespace, as `rbac.needs` does."""

    def __init__(self, needs: Callable[[], dict[str, list[Resource]]]) -> None:
        self._needs = needs
        self.missing: list[str] = []
        """The missing rules, one line each."""

    async def run(self, client: Client) -> None:
        """Ask until nothing is missing, or the API server does not let us ask. Raises: nothing."""
        try:
            rules = self._needs()
        except OptionError as error:
            log.warning("cannot determine required permissions", extra={"because": str(error)})
            return
        left, asked_before, wait = set(permissions(rules)), False, AGAIN_SECONDS
        while left:
            try:
                left = await refused(client, left)
            except (Forbidden, NotFound) as error:
                log.info("skipping the permission check", extra={"because": str(error)})
                return
            except (ApiError, UsageError) as error:
                log.debug("permissions are not known yet", extra={"because": str(error)})
            else:
                # A role that was applied a moment ago is not known to every API server yet: so it is asked for twice.
                if asked_before or not left:
                    self._report(left)
                asked_before = True
            if left:
                await asyncio.sleep(wait)
                wait = min(2.0 * wait, LONGEST_WAIT_SECONDS)

    def _report(self, missing: set[Permission]) -> None:
        lines = missing_lines(missing)
        if self.missing and not lines:
            log.info("no permission is missing any more")
        for line in lines:
            # Once some of a rule's verbs are granted, another line says the rest.
            if line not in self.missing:
                log.warning("a permission is missing", extra={"then": line})
        self.missing = lines


def _as_yaml(rule: Resource) -> str:
    """A policy rule as one line of YAML, to paste into a Role or ClusterRole."""
    values_by_key = {
        key: f"[{', '.join(values)}]" if key == "verbs" else json.dumps(values) for key, values in rule.items()
    }
    return f"- {{{', '.join(f'{key}: {text}' for key, text in values_by_key.items())}}}"


def missing_lines(missing: set[Permission]) -> list[str]:
    """The rules to add, one line each, with their roles."""
    return [
        f"add to {'the ClusterRole' if namespace == CLUSTER else f'the Role in {namespace}'}: {_as_yaml(rule)}"
        for namespace, rules in as_rules(missing).items()
        for rule in rules
    ]
