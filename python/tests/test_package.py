"""What holds for the package as a whole."""

from __future__ import annotations

import subprocess
import sys

import pytest

import fray.cluster
import fray.rl
import fray.v2
from fray.cluster import (
    Entrypoint,
    InvalidRequestError,
    JobRequest,
    LocalCluster,
    ResourceConfig,
    current_cluster,
    parse_size,
)


@pytest.mark.parametrize(
    "module",
    ["fray.cluster", "fray.v2", "fray._callable", "fray.rpc.resolver", "fray.rl", "fray.rl.nexrl_types"],
)
def test_grpc_is_not_imported_before_it_is_needed(module: str) -> None:
    program = f"import sys, {module}; sys.exit(1 if 'grpc' in sys.modules else 0)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_modules_of_a_run_import_no_array_and_no_client_before_they_are_needed() -> None:
    program = (
        "import sys, fray.rl.data, fray.rl.rollout, fray.rl.algorithm, fray.rl.hosting, fray.rl.resources\n"
        "sys.exit(', '.join({'numpy', 'openai', 'wandb', 'grpc'} & sys.modules.keys()) or 0)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_all_that_is_announced_is_there() -> None:
    for module in (fray.cluster, fray.rl, fray.v2):
        assert sorted(module.__all__) == module.__all__ or module is fray.v2
        for name in module.__all__:
            assert getattr(module, name) is not None
    with pytest.raises(AttributeError, match="NoCluster"):
        fray.cluster.NoCluster  # noqa: B018


def test_the_current_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    default = current_cluster()
    assert isinstance(default, LocalCluster)
    assert current_cluster() is default
    monkeypatch.setenv("FRAY_CLUSTER_SPEC", "slurm://head:1")
    with pytest.raises(ValueError, match='"slurm://head:1" names no cluster'):
        current_cluster()
    monkeypatch.delenv("FRAY_CLUSTER_SPEC")
    monkeypatch.setenv("FRAY_CLIENT_SPEC", "slurm://head")  # which is what users set
    with pytest.raises(ValueError, match='"slurm://head" names no cluster'):
        current_cluster()


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("512", 512),
        ("1b", 1),
        ("128m", 128 << 20),
        ("8g", 8 << 30),
        ("8Gi", 8 << 30),
        ("1.5TiB", 3 << 39),
        ("2GB", 2 * 10**9),
        (" 1 kB ", 1000),
        (".5k", 512),
        ("1.g", 1 << 30),
        ("1p", 1 << 50),
    ],
)
def test_sizes(text: str, want: int) -> None:
    assert parse_size(text) == want


@pytest.mark.parametrize("text", ["", "g", "-1g", "1e3", "1gg", "1x", "0", "0.1b", "9999p", "one"])
def test_sizes_that_are_none(text: str) -> None:
    with pytest.raises(InvalidRequestError, match=r"is no size|is out of range"):
        parse_size(text)


def test_resources() -> None:
    tpu = ResourceConfig.with_tpu("v5litepod-16", slice_count=4)
    assert (tpu.tpu, tpu.replicas, tpu.preemptible) == ("v5litepod-16", 4, True)
    cpu = ResourceConfig.with_cpu(cpu=4, ram="8g")
    assert (cpu.cpu, cpu.ram, cpu.disk, cpu.tpu) == (4, "8g", "1g", "")
    assert tpu.with_replicas(2) == ResourceConfig.with_tpu("v5litepod-16", slice_count=2)


def test_entrypoints_that_are_none() -> None:
    for words in ("python main.py", [], [1]):
        with pytest.raises(InvalidRequestError, match="is no command"):
            Entrypoint.from_command(words)  # type: ignore[arg-type]
    with pytest.raises(InvalidRequestError, match="cannot be called"):
        Entrypoint.from_callable(3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "good"),
    [("a", True), ("user/rl/rollout-1.5_b", True), ("", False), ("-a", False), ("a/", False), ("ä", False)],
)
def test_names(name: str, good: bool) -> None:
    request = JobRequest(name, Entrypoint.from_command(["true"]))
    with LocalCluster() as cluster:
        if good:
            cluster.wait(cluster.launch(request), raise_on_failure=True)
        else:
            with pytest.raises(InvalidRequestError, match=r"name: .* is no name"):
                cluster.launch(request)
