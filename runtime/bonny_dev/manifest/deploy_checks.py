"""Checks of `Deploy`: options that no manifest can have.

Internal: every manifest begins with `check_deploy`. A running operator does nothing with these options.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import ip_network

from bonny.deploy import Deploy, FromConfigMap, FromSecret
from bonny.errors import OptionError
from bonny.naming import check_tuple, is_subdomain


def check_deploy(deploy: Deploy) -> None:
    """Raises: `OptionError` for impossible values."""
    if not isinstance(deploy.replicas, int):
        raise OptionError(f"Deploy.replicas is {deploy.replicas!r}: write a whole number")
    if deploy.replicas < 1 or (deploy.replicas > 1 and not deploy.leader_election):
        raise OptionError(f"Deploy.replicas is {deploy.replicas}: use 1, or more with leader_election=True")
    if deploy.certificates not in ("own", "cert-manager"):
        raise OptionError(f"Deploy.certificates is {deploy.certificates!r}: write 'own' or 'cert-manager'")
    if not isinstance(deploy.secure_metrics, bool):
        raise OptionError(f"Deploy.secure_metrics is {deploy.secure_metrics!r}: write True or False")
    _check_environment(deploy)
    if deploy.customize is not None and not callable(deploy.customize):
        raise OptionError(f"Deploy.customize is {deploy.customize!r}: name a function of a list of objects")


def _check_environment(deploy: Deploy) -> None:
    for option, given in (("env", deploy.env), ("egress", deploy.egress)):
        if not isinstance(given, Mapping):
            raise OptionError(f"Deploy.{option} is {given!r}: write a mapping")
    for name, value in deploy.env.items():
        if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
            raise OptionError(f"Deploy.env has {name!r}: use letters, digits and _, and no digit first")
        if not isinstance(value, str) and not _names(value, r"[-.\w]+"):
            raise OptionError(f'Deploy.env has {name}={value!r}: write text, or FromSecret("name", "key")')
    check_tuple("Deploy", "env_from", deploy.env_from, (FromSecret, FromConfigMap), 'FromSecret("name")')
    if wrong := next((each for each in deploy.env_from if not _names(each, "")), None):
        raise OptionError(f"Deploy.env_from has {wrong}: use the name of an object, without a key")
    for network, ports in deploy.egress.items():
        check_tuple("Deploy", f"egress[{network!r}]", ports, int, "5432")
        try:
            ip_network(network)
        except ValueError as error:
            raise OptionError(f"Deploy.egress: {error}: write a network, for example 203.0.113.0/24") from None
        if not ports or not all(0 < port < 65536 for port in ports):
            raise OptionError(f"Deploy.egress[{network!r}] is {ports}: write TCP ports from 1 to 65535")


def _names(source: object, key: str) -> bool:
    """Whether it names an object that can exist, and a key of this pattern."""
    if not isinstance(source, FromSecret | FromConfigMap):
        return False
    return is_subdomain(source.name) and re.fullmatch(key, source.key, re.ASCII) is not None
