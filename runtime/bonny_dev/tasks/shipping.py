"""Shipping: the tasks between a commit and a cluster: lock, image, pin, install, uninstall."""

from __future__ import annotations

import sys
from pathlib import Path
from shutil import which
from typing import Annotated, Final, TypeAlias

from invoke.context import Context

from bonny.errors import UsageError

from ..naming import check_image
from ..project import Project
from .declaring import task
from .options import KubeContext

PLATFORMS: Final = "linux/amd64,linux/arm64"
Namespace: TypeAlias = Annotated[str, "namespace of the operator (default: its name)"]


@task()
def lock(c: Context) -> int:
    """Lock the packages of the image by version and hash; run it again for newer versions."""
    from . import quality

    return quality.run_lock(Project.at(Path(c.root)))


@task(auto_shortflags=False)
def image(
    c: Context, push: Annotated[bool, "build for amd64 and arm64, with SBOM and provenance, and push"] = False
) -> None:
    """Build the container image, with the version of pyproject.toml as its tag; without a lock, make one first."""
    from . import quality

    project = Project.at(Path(c.root))
    tagged = check_image(project.tagged_image)
    if which("docker") is None and not c.config.run.dry:
        raise UsageError("docker is not installed here: install it, or let the pipeline build the image of a tag")
    if push and not c.config.run.dry and c.run("docker buildx version", hide=True, warn=True).failed:
        raise UsageError(
            "--push needs docker with buildx, which builds for several platforms: install it, or let the pipeline "
            "build the image of a tag"
        )
    if not all((project.root / name).exists() for name in quality.LOCKS):
        lock(c)
    # Several platforms and provenance need buildx; an image for this machine does not.
    pushed = f"docker buildx build --platform {PLATFORMS} --sbom true --provenance mode=max --push"
    labelled = f"--label org.opencontainers.image.version={project.version}"
    with c.cd(c.root):
        c.run(f"{pushed if push else 'docker build'} {labelled} --tag {tagged} .", echo=True, echo_format="{command}")


@task(name="pin")
def pin_tags(c: Context) -> None:
    """Pin actions and base images to the commits and digests that their tags stand for now.

    It needs the network, git, and docker with buildx.
    """
    from .pin import pin

    for name in pin(Path(c.root)):
        print(f"pinned {name}")


@task(auto_shortflags=False)
def install(
    c: Context,
    image: Annotated[
        str, "container image to deploy (default: the image in pyproject.toml, with the version as its tag)"
    ] = "",
    namespace: Namespace = "",
    context: KubeContext = "",
    wait: Annotated[
        int, "seconds to wait for a ready replica, if the operator has webhooks: they are registered then"
    ] = 300,
) -> None:
    """Apply the manifest to a cluster, as `kubectl apply --server-side --force-conflicts` does; again, it upgrades."""
    import asyncio

    from ..manifest.webhook_checks import warnings
    from . import deploy
    from .imports import lacking_for_certificates

    project = Project.at(Path(c.root))
    operator = project.load_operator()
    documents = deploy.documents_of(project, image=image, namespace=namespace)
    for each in (*warnings(operator, documents), *lacking_for_certificates(project, operator)):
        print(f"warning: {each}", file=sys.stderr)
    asyncio.run(deploy.install(deploy.cluster_of(context), documents, wait=wait))


@task(auto_shortflags=False)
def uninstall(
    c: Context,
    image: Annotated[str, "container image, as given to install"] = "",
    namespace: Namespace = "",
    context: KubeContext = "",
    wait: Annotated[int, "seconds to wait for the clean-up of custom resources"] = 300,
    yes: Annotated[bool, "delete; without it, only list the objects to delete"] = False,
) -> None:
    """Remove webhooks and policies, then the custom resources, the operator and its CRDs from a cluster.

    Its namespace is deleted, too, if it has the operator's name; another one stays.
    """
    import asyncio

    from . import deploy

    project = Project.at(Path(c.root))
    documents = deploy.documents_of(project, image=image, namespace=namespace)
    operator = project.load_operator()
    watched = namespace or operator.name if operator.namespaced else ""
    target = deploy.cluster_of(context)
    asyncio.run(deploy.uninstall(target, documents, own=operator.name, namespace=watched, wait=wait, sure=yes))
