"""The operator `<< cookiecutter.operator_slug >>`: its APIs, its controllers and the operator that runs them."""
