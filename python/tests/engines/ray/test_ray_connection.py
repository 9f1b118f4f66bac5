"""Checks 1 to 5: specs, connections and their errors."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from fray.cluster import AccessDeniedError, ClusterUnavailableError
from fray.cluster.current import import_backend
from fray.cluster.ray import dial
from fray.cluster.ray.spec import Spec

CONNECT = """
import os, sys
from fray.v2 import current_client
client = current_client()
print(client.cluster.namespace, len(client.cluster.list_jobs()))
"""


def program(nodes: Any, text: str, **environ: str | None) -> subprocess.CompletedProcess[str]:
    """Run a program beside the cluster."""
    chosen = {**os.environ, **nodes.environ, **{k: v for k, v in environ.items() if v is not None}}
    for name in (name for name, value in environ.items() if value is None):
        chosen.pop(name, None)
    return subprocess.run(
        [sys.executable, "-c", text], env=chosen, capture_output=True, text=True, timeout=200, check=False
    )


@pytest.mark.parametrize("form", ["address", "auto"])
def test_ray_01_specs(nodes: Any, form: str) -> None:
    variables = {"FRAY_CLIENT_SPEC": f"ray:{nodes.address}?namespace=specs"}
    if form == "auto":
        variables = {"FRAY_CLIENT_SPEC": "ray:auto", "RAY_ADDRESS": nodes.address, "FRAY_NAMESPACE": "specs"}
    assert program(nodes, CONNECT, **variables).stdout == "specs 0\n"


CLIENT = """
from fray.cluster import *
cluster = current_cluster()
job = cluster.launch(JobRequest("far", Entrypoint.from_callable(print, ["from afar"])))
print(cluster.monitor(job).status)
"""


def test_ray_01_ray_client(nodes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through the proxy, as from a machine that is no node; the token alone is enough."""
    monkeypatch.chdir(tmp_path)
    spec = f"{nodes.client}?namespace=far"
    found = program(nodes, CLIENT, FRAY_CLUSTER_SPEC=spec, RAY_AUTH_MODE=None)
    assert found.stdout == "from afar\nsucceeded\n", found.stderr


def test_ray_03_token_of_a_ray_client(nodes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(tmp_path / "none"))
    with pytest.raises(AccessDeniedError, match="wants a token, and this program has no token"):
        dial._check_proxy(Spec(nodes.client))


def test_ray_01_unknown_scheme() -> None:
    with pytest.raises(ValueError, match=r'"rays:auto" names no cluster; .*"ray:auto"'):
        import_backend("rays:auto")


def test_ray_02_no_cluster(nodes: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    began = time.monotonic()
    with pytest.raises(ClusterUnavailableError) as err:
        dial._reach(Spec(f"127.0.0.1:{port}"))
    assert time.monotonic() - began < 10
    assert f"127.0.0.1:{port}" in str(err.value)
    assert "ray start --head" in str(err.value)
    found = program(nodes, CONNECT, FRAY_CLIENT_SPEC=f"ray:127.0.0.1:{port}")
    assert found.returncode == 1
    assert f"the cluster at 127.0.0.1:{port} did not answer" in found.stderr


def test_ray_02_another_server() -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        port = mute.getsockname()[1]
        began = time.monotonic()
        with pytest.raises(ClusterUnavailableError, match="no Ray cluster"):
            dial._check_alive(dial.import_ray(), Spec(f"127.0.0.1:{port}"))
        assert time.monotonic() - began < 10


@pytest.mark.parametrize("which", ["missing", "wrong"])
def test_ray_03_token(nodes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, which: str) -> None:
    wrong = "5ec7e7" * 10
    (tmp_path / "token").write_text(wrong)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", str(tmp_path / ("token" if which == "wrong" else "none")))
    with pytest.raises(AccessDeniedError) as err:
        dial._check_alive(dial.import_ray(), Spec(nodes.address))
    for place in ("RAY_AUTH_TOKEN,", "RAY_AUTH_TOKEN_PATH", "~/.ray/auth_token", nodes.address):
        assert place in str(err.value)
    assert wrong not in str(err.value)
    assert ("no token" in str(err.value)) is (which == "missing")


def test_ray_03_token_without_mode(nodes: Any) -> None:
    """A token alone is enough: Ray itself would not show it."""
    found = program(
        nodes, CONNECT, FRAY_CLIENT_SPEC=f"ray:{nodes.address}?namespace=specs", RAY_AUTH_MODE=None
    )
    assert (found.stdout, found.returncode) == ("specs 0\n", 0)
    assert nodes.token.read_text() not in found.stderr


def test_ray_04_versions(nodes: Any) -> None:
    other = "import ray; real = ray.__version__; ray.__version__ = '2.1.0'" + CONNECT
    found = program(nodes, other, FRAY_CLIENT_SPEC=f"ray:{nodes.address}")
    import ray

    assert f"runs Ray {ray.__version__}, and this program Ray 2.1.0; use the same" in found.stderr


def test_ray_05_not_imported(nodes: Any) -> None:
    text = "import sys, fray, fray.v2, fray.cluster; print('ray' in sys.modules)"
    assert program(nodes, text).stdout == "False\n"


def test_ray_05_not_installed(nodes: Any) -> None:
    without = "import sys; sys.modules['ray'] = None" + CONNECT
    found = program(nodes, without, FRAY_CLIENT_SPEC="ray:auto")
    assert "ImportError: " in found.stderr
    assert "install fray-ml[ray]" in found.stderr
