"""Requests as Iris's messages, names, specs, what is shipped, and the variables of tasks."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

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
from fray.cluster.iris.logs import RECORD, termination_of
from fray.cluster.iris.names import Names, own_namespace
from fray.cluster.iris.request import check, launch_of, variables_of
from fray.cluster.iris.spec import Spec, of_address, own_spec, parse

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


def test_alternatives() -> None:
    both = ResourceConfig.with_accelerators(["v4-16", "v5p-16"])
    body = sent(JobRequest("train", TRUE, both))
    assert body["resources"]["device"] == {"tpu": {"variant": "v4-16", "count": 4}}
    assert (body["replicas"], body["coscheduling"]) == (2, {"groupBy": "tpu-name"})
    values = [{"stringValue": "v4-16"}, {"stringValue": "v5p-16"}]
    assert body["constraints"] == [{"key": "device-variant", "op": "CONSTRAINT_OP_IN", "values": values}]
    check(JobRequest("train", TRUE, both), "alice", "alice")
    same = ResourceConfig.with_accelerators(["h100:8", "h200:8"])
    check(JobRequest("train", TRUE, same), "alice", "alice")
    for others in (
        ["v4-8", "v4-16"],
        ["v5litepod-8", "v5litepod-4"],
        ["v4-8", "h100:4"],
        ["h100:8", "h100:4"],
    ):
        with pytest.raises(InvalidRequestError, match="in common"):
            check(JobRequest("train", TRUE, ResourceConfig.with_accelerators(others)), "alice", "alice")


def test_several_slices() -> None:
    for resources, tasks in (
        (ResourceConfig.with_tpu("v4-16", slice_count=2), 1),
        (ResourceConfig.with_tpu("v4-16"), 4),
    ):
        with pytest.raises(InvalidRequestError, match="launch one job for each slice"):
            check(JobRequest("train", TRUE, resources, num_tasks=tasks), "alice", "alice")
    check(JobRequest("train", TRUE, ResourceConfig.with_tpu("v4-8", slice_count=4)), "alice", "alice")
    check(JobRequest("train", TRUE, ResourceConfig.with_tpu("v4-16"), num_tasks=2), "alice", "alice")


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
        check(
            JobRequest("train", TRUE, ResourceConfig(regions=["us-central2-b", "us-east1"])), "alice", "alice"
        )


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
        namespace="other",  # type: ignore[arg-type]
    )
    with pytest.raises(InvalidRequestError, match="Iris cannot run this job") as raised:
        check(request, "alice", "alice")
    fields = {each.field for each in raised.value.fields}
    assert fields == {
        "name",
        "user",
        "reservation_id",
        "priority",
        "health_check",
        "stop_grace_seconds",
        "labels",
        "namespace",
    }
    check(JobRequest("train", TRUE, user="alice"), "alice", "alice")


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


def test_fray_does_not_import_it() -> None:
    code = "import sys, fray, fray.v2, fray.cluster; print([m for m in sys.modules if 'iris' in m])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out == "[]\n"
