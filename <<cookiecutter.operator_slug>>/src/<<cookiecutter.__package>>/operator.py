"""The operator: what it serves and what it looks after."""

from bonny import Operator, discover

from . import api, controllers

operator = Operator(
    name="<< cookiecutter.operator_slug >>",
    group="<< cookiecutter.api_group >>",
    crds=discover(api),
    controllers=discover(controllers),
    watch="<< cookiecutter.watches >>",
)
