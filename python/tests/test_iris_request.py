"""Requests as Iris's messages, names, specs, what is shipped, and the variables of tasks."""

from __future__ import annotations

import io
import json
import os
import ssl
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from fray import _pickling
from fray.cluster import (
    Band,
    Entrypoint,
    EnvironmentConfig,
    HealthCheck,
    InvalidRequestError,
    JobRequest,
    NameClash,
    ResourceConfig,
)
from fray.cluster.iris import ship, task
from fray.cluster.iris.dialect import JUNE, OCTOBER
from fray.cluster.iris.identity import fingerprint_of, make_identity, own_identity
from fray.cluster.iris.logs import RECORD, termination_of
from fray.cluster.iris.names import Names, own_namespace
from fray.cluster.iris.request import check, launch_of, variables_of
from fray.cluster.iris.spec import Spec, of_address, own_spec, parse, task_of

TRUE = Entrypoint.from_command(["true"])
IN_TASK = {
    "IRIS_TASK_ID": "/alice/train/3:2",
    "IRIS_NUM_TASKS": "4",
    "IRIS_CONTROLLER_ADDRESS": "http://10.0.0.1:10000",
    "IRIS_ADVERTISE_HOST": "10.0.0.7",
    "IRIS_PORT_ACTOR": "30001",
    "IRIS_PORT_FREE": "0",
    "IRIS_BUNDLE_ID": "b" * 64,
    "IRIS_JOB_ENV": json.dumps({"GIVEN": "1", "FRAY_ACTOR_NAMES": "[]"}),
    "IRIS_WORKER_REGION": "us-central1",
}


def sent(request: JobRequest, region: str = "") -> dict[str, Any]:
    return launch_of(request, f"/alice/{request.name}", region)


# Resources


@pytest.mark.parametrize(
    ("resources", "region", "want"),
    [
        (ResourceConfig(), "", None),
        (
            ResourceConfig(),
            "us-1",
            [{"key": "region", "op": "CONSTRAINT_OP_EQ", "value": {"stringValue": "us-1"}}],
        ),
        (ResourceConfig(regions=["*"]), "us-1", None),
        (
            ResourceConfig(regions=["us-1", "us-2"]),
            "us-1",
            [
                {
                    "key": "region",
                    "op": "CONSTRAINT_OP_IN",
                    "values": [{"stringValue": "us-1"}, {"stringValue": "us-2"}],
                }
            ],
        ),
        (
            ResourceConfig(preemptible=False),
            "",
            [{"key": "preemptible", "op": "CONSTRAINT_OP_EQ", "value": {"stringValue": "false"}}],
        ),
    ],
)
def test_constraints(resources: ResourceConfig, region: str, want: object) -> None:
    assert sent(JobRequest("train", TRUE, resources), region).get("constraints") == want


@pytest.mark.parametrize(
    ("tpu", "slices", "tasks", "chips", "gang"),
    [
        ("v4-8", 1, 1, 4, False),
        ("v4-16", 1, 2, 4, True),
        ("v5litepod-16", 1, 4, 4, True),
        ("v5e-8", 1, 1, 8, False),
        ("v5p-8", 4, 4, 4, False),
        ("v6e-8", 1, 1, 8, False),
        ("v6e-16", 1, 4, 4, True),
    ],
)
def test_slices(tpu: str, slices: int, tasks: int, chips: int, gang: bool) -> None:
    body = sent(JobRequest("train", TRUE, ResourceConfig.with_tpu(tpu, slice_count=slices)))
    assert body["replicas"] == tasks
    assert body["resources"]["device"]["tpu"]["count"] == chips
    assert body.get("coscheduling") == ({"groupBy": "tpu-name"} if gang else None)
    assert "memoryBytes" not in body["resources"]  # its hosts have what they have


@dataclass
class _Choice(ResourceConfig):
    accelerators: Sequence[str] = ()


def test_alternatives() -> None:
    both = _Choice(accelerators=["v4-16", "v5p-16"])
    body = sent(JobRequest("train", TRUE, both))
    assert body["resources"]["device"] == {"tpu": {"variant": "v4-16", "count": 4}}
    assert (body["replicas"], body["coscheduling"]) == (2, {"groupBy": "tpu-name"})
    values = [{"stringValue": "v4-16"}, {"stringValue": "v5p-16"}]
    assert body["constraints"] == [{"key": "device-variant", "op": "CONSTRAINT_OP_IN", "values": values}]
    check(JobRequest("train", TRUE, both), "alice")
    check(JobRequest("train", TRUE, _Choice(accelerators=["h100:8", "h200:8"])), "alice")
    for others in (
        ["v4-8", "v4-16"],
        ["v5litepod-8", "v5litepod-4"],
        ["v4-8", "h100:4"],
        ["h100:8", "h100:4"],
    ):
        with pytest.raises(InvalidRequestError, match="in common"):
            check(JobRequest("train", TRUE, _Choice(accelerators=others)), "alice")


def test_several_slices() -> None:
    for resources, tasks in (
        (ResourceConfig.with_tpu("v4-16", slice_count=2), 1),
        (ResourceConfig.with_tpu("v4-16"), 4),
    ):
        with pytest.raises(InvalidRequestError, match="launch one job for each slice"):
            check(JobRequest("train", TRUE, resources, num_tasks=tasks), "alice")
    check(JobRequest("train", TRUE, ResourceConfig.with_tpu("v4-8", slice_count=4)), "alice")
    check(JobRequest("train", TRUE, ResourceConfig.with_tpu("v4-16"), num_tasks=2), "alice")


def test_gpus() -> None:
    body = sent(JobRequest("train", TRUE, ResourceConfig.with_gpu("NVIDIA H100", 8, replicas=2)))
    assert body["resources"] == {"cpuMillicores": 4000, "device": {"gpu": {"variant": "h100", "count": 8}}}
    assert (body["replicas"], body["coscheduling"]) == (2, {"groupBy": "leafgroup"})
    body = sent(JobRequest("train", TRUE, ResourceConfig.with_gpu(cpu=32, ram="64g")))
    assert body["resources"]["device"] == {"gpu": {"variant": "auto", "count": 1}}
    assert (body["resources"]["cpuMillicores"], body["resources"]["memoryBytes"]) == (32000, str(64 << 30))
    assert variables_of(ResourceConfig.with_gpu("h100")) == {}


def test_zones() -> None:
    (zone,) = sent(JobRequest("train", TRUE, ResourceConfig(regions=["us-central2-b"])))["constraints"]
    assert (zone["key"], zone["value"]) == ("zone", {"stringValue": "us-central2-b"})
    with pytest.raises(InvalidRequestError, match="some of each"):
        check(JobRequest("train", TRUE, ResourceConfig(regions=["us-central2-b", "us-east1"])), "alice")


def test_cpu() -> None:
    body = sent(JobRequest("train", TRUE, ResourceConfig(cpu=0.5, ram="2g", disk="10g", replicas=3)))
    assert body["resources"] == {
        "cpuMillicores": 500,
        "memoryBytes": str(2 << 30),
        "diskBytes": str(10 << 30),
    }
    assert (body["replicas"], body.get("coscheduling")) == (3, None)
    assert variables_of(ResourceConfig()) == {"JAX_PLATFORMS": "cpu"}
    v6e = ResourceConfig.with_tpu("v6e-8")
    assert variables_of(v6e) == {"LIBTPU_INIT_ARGS": "--xla_tpu_scoped_vmem_limit_kib=98304"}


def test_the_rest_of_a_request() -> None:
    request = JobRequest(
        "train",
        TRUE,
        environment=EnvironmentConfig(image="registry/image"),
        max_retries_failure=3,
        max_retries_preemption=-1,
        band=Band.BATCH,
        name_clash=NameClash.KEEP,
        timeout_seconds=1.5,
        scheduling_timeout_seconds=60,
        ports=("actor", "http"),
    )
    body = sent(request)
    assert (body["maxRetriesFailure"], body["maxRetriesPreemption"]) == (3, 2147483647)
    assert (body["priorityBand"], body["existingJobPolicy"]) == (
        "PRIORITY_BAND_BATCH",
        "EXISTING_JOB_POLICY_KEEP",
    )
    assert (body["timeout"], body["schedulingTimeout"]) == (
        {"milliseconds": "1500"},
        {"milliseconds": "60000"},
    )
    assert (body["ports"], body["taskImage"]) == (["actor", "http"], "registry/image")


def test_misfits_are_all_named() -> None:
    request = JobRequest(
        "7",
        TRUE,
        priority=1,
        user="bob",
        labels={"a": "b"},
        health_check=HealthCheck(tcp=True),
        stop_grace_seconds=3,
        reservation_id="r",  # type: ignore[arg-type]
    )
    with pytest.raises(InvalidRequestError, match="Iris cannot run this job") as raised:
        check(request, "alice")
    fields = {each.field for each in raised.value.fields}
    assert fields == {
        "name",
        "user",
        "reservation_id",
        "priority",
        "health_check",
        "stop_grace_seconds",
        "labels",
    }
    check(JobRequest("train", TRUE, user="alice"), "alice")


# Names


def test_names() -> None:
    outside = Names("alice", "alice")
    assert outside.job_id("a/b", detached=False) == "/alice/a%2Fb"
    assert outside.name("/alice/a%2Fb") == "a/b"
    assert outside.trees == ("/alice/",)
    chosen = Names("alice", "run2")
    assert chosen.job_id("train", detached=False) == "/alice/run2.train"
    assert chosen.name("/alice/run2.train") == chosen.name("/alice/run2.x/train") == "train"
    assert chosen.trees == ("/alice/run2.",)
    inside = Names("alice", "alice/driver", "/alice/driver/sub")
    assert inside.job_id("train", detached=False) == "/alice/driver/sub/train"
    assert inside.job_id("train", detached=True) == "/alice/driver.train"
    assert inside.name("/alice/driver.train") == "train"
    assert inside.trees == ("/alice/driver/", "/alice/driver.")
    assert (own_namespace("alice", ""), own_namespace("alice", "/alice/a/b")) == ("alice", "alice/a")


# Specs


def test_specs() -> None:
    assert parse("iris://h:1?user=bob&namespace=n&tls=1", {}) == Spec("h", 1, "bob", "n", True)
    assert parse("iris://h:1", {"IRIS_USER": "carol"}).user == "carol"
    assert parse("iris://", IN_TASK) == Spec("10.0.0.1", 10000, "alice")
    assert parse("iris://h:1?user=bob", IN_TASK).user == "alice"  # whose task it is
    assert of_address("https://h", {"IRIS_USER": "a"}) == Spec("h", 443, "a", "", True)
    assert own_spec(IN_TASK) == "iris://10.0.0.1:10000?user=alice"
    assert own_spec({}) == ""
    for text in ("iris://h:1", "iris://[::1]:7?user=a&namespace=b/c&tls=1"):
        assert parse(parse(text, {"IRIS_USER": "a"}).text, {}) == parse(text, {"IRIS_USER": "a"})


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("iris://", "names no controller"),
        ("iris://h", "names no controller"),
        ("iris://h:x", "no iris://host:port"),
        ("iris://h:1/path", "no iris://host:port"),
        ("iris://h:1?usr=x", "usr means nothing; known are user, namespace, tls"),
        ("iris://h:1?namespace=a b", "no namespace"),
        ("iris://h:1?user=a/b", "cannot be a user"),
    ],
)
def test_specs_that_are_none(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse(text, {})


def test_addresses_that_are_none() -> None:
    for text in ("h", "ftp://h:1", "http://h:1/x"):
        with pytest.raises(ValueError, match="no address of an Iris controller"):
            of_address(text, {})


# Tasks


def test_variables_of_a_task(tmp_path: Path) -> None:
    (tmp_path / ".fray").mkdir()
    (tmp_path / ship.IDENTITY).touch()
    found = task.variables(IN_TASK, tmp_path)
    assert found == {
        "FRAY_JOB_ID": "/alice/train",
        "FRAY_JOB_NAME": "train",
        "FRAY_NAMESPACE": "alice/train",
        "FRAY_ATTEMPT": "3",
        "FRAY_TASK_INDEX": "3",
        "FRAY_NUM_TASKS": "4",
        "FRAY_CLUSTER_SPEC": "iris://10.0.0.1:10000?user=alice",
        "FRAY_CLIENT_SPEC": "iris://10.0.0.1:10000?user=alice",
        "FRAY_HOST_ADDRESS": "10.0.0.7",
        "FRAY_TERMINATION_FILE": str(tmp_path / ".fray/termination"),
        "FRAY_ACTOR_IDENTITY": str(tmp_path / ship.IDENTITY),
        "FRAY_PORT_ACTOR": "30001",
    }
    with pytest.raises(SystemExit, match="no task of Iris's"):
        task.variables({}, tmp_path)


def test_record_of_a_failure() -> None:
    record = {"cause": "actor_unmade", "type": "ValueError", "message": "no weights", "trace": "t"}
    found = termination_of(["other", RECORD + json.dumps(record), "more"])
    assert found is not None
    assert (found.cause, found.type, found.message) == ("actor_unmade", "ValueError", "no weights")
    assert termination_of([RECORD + "{}"]) is None
    assert termination_of([]) is None


# What is shipped


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


def test_fray_does_not_import_it() -> None:
    code = "import sys, fray, fray.v2, fray.cluster; print([m for m in sys.modules if 'iris' in m])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out == "[]\n"
