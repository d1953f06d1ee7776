"""Texts: the files of a chart that are for people, not for the API server."""

from __future__ import annotations

from typing import Final

HELMIGNORE: Final = """\
.git
.gitignore
*.swp
*.bak
*.tmp
.DS_Store
"""

EXTRA: Final = """\
{{- /*
Write templates of your own beside this file. `invoke manifest --format helm` never changes them.
Values for them go below `extra` in values.yaml.
*/ -}}
"""

NOTES: Final = """\
{name} {{{{ .Chart.AppVersion }}}} is installed in the namespace {{{{ .Release.Namespace }}}}.

Its pods fit the restricted profile of the Pod Security Standards. To enforce the profile in the namespace:

  kubectl label namespace {{{{ .Release.Namespace }}}} pod-security.kubernetes.io/enforce=restricted

To see whether it is ready:

  kubectl --namespace {{{{ .Release.Namespace }}}} rollout status deployment/{name}
"""

README: Final = """\
# {name}

`invoke manifest --format helm` writes this chart. Each time it replaces these files, unless one was edited:
`Chart.yaml`, `values.schema.json`, `README.md`, `.helmignore`, and `templates/` without `templates/extra/`.
`values.yaml` and `templates/extra/` are yours.

```console
$ helm upgrade --install {name} . --namespace {name} --create-namespace
```

- **Values**: `values.yaml` explains them, `values.schema.json` checks them. `extra` is for templates of your own.
- **CRDs** are upgraded with the release, and an uninstall leaves them, with all objects (`crd.keep`). To manage them
  apart, install the chart `{name}-crds` first, and this one with `--set crd.enable=false`.
- **Objects that exist**, from `kubectl apply` or `invoke install`, become part of the release with
  `--take-ownership --force-conflicts`.
- **Uninstall**: delete the custom resources before, while the operator runs their finalizers.
"""

README_OF_CRDS: Final = """\
# {name}-crds

`invoke manifest --format helm` writes this chart: the CRDs of {name}, for clusters where they are managed apart from
the operator. An uninstall leaves them, with all objects.

```console
$ helm upgrade --install {name}-crds . --namespace {name} --create-namespace
```
"""
