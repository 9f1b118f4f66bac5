"""What is shipped to Iris with a job: bundles, set-up scripts, and the identity of a namespace."""

from __future__ import annotations

import io
import json
import os
import ssl
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from fray import _pickling
from fray.cluster import Entrypoint, EnvironmentConfig, InvalidRequestError, JobRequest
from fray.cluster.iris import ship
from fray.cluster.iris.dialect import JUNE, OCTOBER
from fray.cluster.iris.identity import fingerprint_of, make_identity, own_identity
from fray.cluster.iris.spec import task_of

TRUE = Entrypoint.from_command(["true"])
IN_TASK = {
    "IRIS_TASK_ID": "/alice/train/3:2",
    "IRIS_BUNDLE_ID": "b" * 64,
    "IRIS_JOB_ENV": json.dumps({"GIVEN": "1", "FRAY_ACTOR_NAMES": "[]"}),
}


def completed(request: JobRequest, dialect: Any, environ: Mapping[str, str] | None = None) -> dict[str, Any]:
    body: dict[str, Any] = {}
    ship.Shipper(None, task_of(environ or {})).complete(
        body, request, dialect, {"FRAY_NAMESPACE": "alice"}, ""
    )
    return body


def test_bundle_has_fray_and_the_project(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'p'\nversion = '1'\n")
    (tmp_path / "main.py").write_text("print(1)\n")
    (tmp_path / ".gitignore").write_text("secret\n")
    (tmp_path / "secret").write_text("x")
    data = ship.bundle_of(str(tmp_path))
    names = set(zipfile.ZipFile(io.BytesIO(data)).namelist())
    assert {
        ".fray/fray/__init__.py",
        ".fray/fray/cluster/tpu_types.txt",
        "main.py",
        "pyproject.toml",
    } <= names
    assert not any("secret" in name or "__pycache__" in name for name in names)
    assert ship.bundle_of(str(tmp_path)) == data


def test_bundle_runs_without_fray_installed(tmp_path: Path) -> None:
    zipfile.ZipFile(io.BytesIO(ship.bundle_of(None))).extractall(tmp_path)
    code = "import fray.cluster.iris.task as t; print(t.__file__)"
    environ = {**os.environ, "PYTHONPATH": str(tmp_path / ".fray")}
    out = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True
    ).stdout
    assert out.startswith(str(tmp_path))


def test_large_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ship, "MAX_BUNDLE", 1 << 20)
    (tmp_path / "weights").write_bytes(os.urandom(3 << 20))
    with pytest.raises(
        InvalidRequestError, match=r"more than the 1 MiB .* the largest files are weights \(3 MiB\)"
    ):
        ship.bundle_of(str(tmp_path))


def test_needs_are_those_of_the_distribution() -> None:
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    assert sorted(project["dependencies"]) == sorted(ship.NEEDS)


def test_set_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    request = JobRequest("train", TRUE, environment=EnvironmentConfig(env_vars={"A": "1"}))
    october, june = completed(request, OCTOBER), completed(request, JUNE)
    (script,) = october["environment"]["setupScripts"]
    assert june["entrypoint"]["setupCommands"][0] == script
    assert "source" in june["entrypoint"]["setupCommands"][1]
    assert f"uv venv --python {_pickling.python_version()}" in script
    assert "'msgpack>=1.1'" in script
    assert october["environment"]["envVars"]["A"] == "1"
    (tmp_path / "pyproject.toml").touch()
    extras = EnvironmentConfig(extras=["tpu"], python="3.12")
    with pytest.raises(
        InvalidRequestError, match=r"has no uv\.lock, which extras and groups need; run uv lock"
    ):
        completed(JobRequest("train", TRUE, environment=extras), OCTOBER)
    (tmp_path / "uv.lock").touch()
    (script,) = completed(JobRequest("train", TRUE, environment=extras), OCTOBER)["environment"][
        "setupScripts"
    ]
    assert "uv sync --frozen --no-dev --python 3.12 --extra tpu" in script


def test_children_are_set_up_as_their_parent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").touch()  # which is not shipped again
    monkeypatch.setenv(ship.SETUP, json.dumps([["echo parent"], "image"]))
    body = completed(JobRequest("child", TRUE), OCTOBER, IN_TASK)
    assert body["bundleId"] == IN_TASK["IRIS_BUNDLE_ID"]
    assert (body["environment"]["setupScripts"], body["taskImage"]) == (["echo parent"], "image")
    assert body["environment"]["envVars"]["GIVEN"] == "1"
    assert "FRAY_ACTOR_NAMES" not in body["environment"]["envVars"]
    alone = EnvironmentConfig(inherit=False)
    assert (
        "GIVEN"
        not in completed(JobRequest("child", TRUE, environment=alone), OCTOBER, IN_TASK)["environment"][
            "envVars"
        ]
    )


# Identities


def test_identity_is_accepted_by_tls(tmp_path: Path) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric import ec

    pem = make_identity("fray://host:1/alice")
    certificate = x509.load_pem_x509_certificate(pem.encode())
    key = certificate.public_key()
    assert isinstance(key, ec.EllipticCurvePublicKey)
    certificate.verify_directly_issued_by(certificate)
    file = tmp_path / "identity.pem"
    file.write_text(pem)
    assert fingerprint_of(str(file)) == certificate.fingerprint(certificate.signature_hash_algorithm).hex()  # type: ignore[arg-type]
    contexts = []
    for protocol in (ssl.PROTOCOL_TLS_SERVER, ssl.PROTOCOL_TLS_CLIENT):
        context = ssl.SSLContext(protocol)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(file)
        context.load_cert_chain(file)
        contexts.append(context)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = contexts[0].wrap_bio(to_server, to_client, server_side=True)
    client = contexts[1].wrap_bio(to_client, to_server, server_hostname="fray-actors")
    for _ in range(4):
        for side in (client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    assert (
        client.getpeercert(True)
        == server.getpeercert(True)
        == ssl.PEM_cert_to_DER_cert(pem[pem.index("-----BEGIN CERT") :])
    )


def test_own_identity_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    path = own_identity("alice/train")
    content = Path(path).read_text()
    assert Path(path).stat().st_mode & 0o777 == 0o600
    assert own_identity("alice/train") == path
    assert Path(path).read_text() == content
    assert own_identity("bob") != path
    assert [each.name for each in Path(path).parent.iterdir() if each.suffix != ".pem"] == []
