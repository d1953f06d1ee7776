"""Formats: writes the operator as one YAML file, or in a folder for Helm, kustomize or OLM: `invoke manifest`.

Elsewhere: the objects (`manifest.bundle`), and what each format makes of them (`bonny_dev.formats`).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bonny.errors import UsageError
from bonny.operator import Operator
from bonny.resource import Resource

from ..formats.folder import Folder, Written
from ..formats.folder import write as write_folder
from ..install import read_documents
from ..manifest import bundle, command, granting, webhook_checks
from ..naming import check_image
from ..project import Project
from .imports import lacking_for_certificates
from .options import ManifestOptions, separated

FOLDERS: Final = {"helm": "deploy/helm", "kustomize": "deploy/kustomize", "olm": "deploy/olm"}
"""The formats that are folders, and where each is written by default."""


def write(project: Project, options: ManifestOptions) -> tuple[list[str], list[str]]:
    """Write one format, and return the lines to show and the warnings.

    Raises: `UsageError` for an impossible option, for generated files that were edited, and as the formats do; then
    nothing is written.
    """
    if options.format_ not in ("yaml", *FOLDERS):
        raise UsageError(f"there is no format {options.format_!r}: --format takes yaml, {', '.join(FOLDERS)}")
    operator = project.load_operator()
    if options.format_ == "yaml":
        return _write_yaml(project, operator, options)
    _check(options)
    files, objects, lost = _made(project, operator, options)
    folder = project.root / (options.out or FOLDERS[options.format_])
    written = write_folder(folder, files, force=options.force)
    shown = folder.relative_to(project.root) if folder.is_relative_to(project.root) else folder
    warnings = [*lost, *_risks(project, operator, objects)]
    if options.format_ == "helm":
        warnings += _lacking(folder, files, written)
    return [*_lines(str(shown), files, written)], warnings


def _write_yaml(project: Project, operator: Operator, options: ManifestOptions) -> tuple[list[str], list[str]]:
    if options.force:
        raise UsageError("--force is for formats that are folders: a YAML file is always replaced")
    usual = f"{project.image}:{project.version}" if project.image else None
    objects = bundle.documents(
        operator,
        image=options.image or usual,
        namespace=options.namespace or None,
        local=options.local,
        crds_only=options.crds_only,
        include=options.include,
        exclude=options.exclude,
        grant_in=separated(options.grant_in),
    )
    out = options.out or "manifest.yaml"
    command.write(bundle.to_yaml(objects), out if out == "-" else str(project.root / out))
    return [] if out == "-" else [f"wrote {out}"], _risks(project, operator, objects)


def _risks(project: Project, operator: Operator, objects: list[Resource]) -> list[str]:
    risks = (*webhook_checks.warnings(operator, objects), *granting.warnings(operator))
    return [*risks, *lacking_for_certificates(project, operator)]


def _check(options: ManifestOptions) -> None:
    """Refuse options that a folder has no use for."""
    name = options.format_
    if options.out == "-":
        raise UsageError(f"--format {name} writes a folder, not one text: name a folder by --out, or leave --out out")
    if options.local or options.crds_only:
        raise UsageError(f"--local and --crds-only are for --format yaml: leave them out for {name}")
    if options.grant_in:
        raise UsageError(f"--grant-in is for --format yaml: leave it out for {name}")
    if options.namespace and name != "kustomize":
        place = "`helm install --namespace` names it" if name == "helm" else "it is the namespace of OLM's Subscription"
        raise UsageError(f"--namespace does not go with --format {name}, because {place}: leave it out")


def _made(project: Project, operator: Operator, options: ManifestOptions) -> tuple[Folder, list[Resource], list[str]]:
    """The files, the objects of the manifest, and what the format lacks of it."""
    from ..formats import helm, kustomize, olm

    image = check_image(options.image or project.tagged_image)
    include, exclude = options.include, options.exclude
    namespace = options.namespace or None
    objects = bundle.documents(operator, image=image, namespace=namespace, include=include, exclude=exclude)
    if options.format_ == "helm":
        made = helm.charts(operator, image=image, version=project.version, include=include, exclude=exclude)
        return made, objects, []
    if options.format_ == "kustomize":
        return kustomize.base(objects, replicas=operator.deploy.replicas, image=image), objects, []
    paths = sorted((project.root / "samples").glob("*.yaml"))
    samples = [each for path in paths for each in read_documents(f"samples/{path.name}", path.read_bytes())]
    files, lost = olm.bundle(
        operator, image=image, version=project.version, samples=samples, include=include, exclude=exclude
    )
    return files, objects, lost


def _lines(folder: str, files: Folder, written: Written) -> Iterator[str]:
    if changed := len(written.changed) + len(written.removed):
        yield f"wrote {folder}: {changed} of {len(files.generated) + len(files.own)} files changed"
    else:
        yield f"nothing to do: {folder} is up to date"
    yield from (f"kept {folder}/{name}, which was edited" for name in written.kept)


def _lacking(folder: Path, files: Folder, written: Written) -> Iterator[str]:
    """A warning for each values.yaml that was kept and lacks a value, without which Helm refuses the chart."""
    from ..formats.values import lacking

    for name in (name for name in written.kept if name.endswith("/values.yaml")):
        if lines := lacking(files.own[name], (folder / name).read_text("utf-8")):
            yield f"{name} lacks {', '.join(lines)}: add the missing values, or Helm refuses the chart"
