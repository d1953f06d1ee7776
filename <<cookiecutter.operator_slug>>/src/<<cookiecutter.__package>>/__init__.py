"""The operator `<< cookiecutter.operator_slug >>`: its APIs, its controllers and what ties them together."""
