"""The operator: its kinds, controllers and options."""

from bonny import Operator, discover

from . import api, controllers

operator = Operator(
    name="<< cookiecutter.operator_slug >>",
    group="<< cookiecutter.api_group >>",
    crds=discover(api),
    controllers=discover(controllers),
    watch="<< cookiecutter.watches >>",
)
