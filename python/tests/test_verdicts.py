"""A LocalCluster refuses what a cluster refuses.

The table is here; `verdicts.json` beside it has the same requests as messages, which the Go test
TestVerdictsOfRequests launches at a controller. UPDATE_VERDICTS=1 writes it anew.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format

from fray._pb import cluster_pb2 as pb
from fray.cluster import (
    Entrypoint,
    EnvironmentConfig,
    HealthCheck,
    InvalidRequestError,
    JobRequest,
    LocalCluster,
    ResourceConfig,
)
from fray.cluster.remote.convert import request_to

_TRUE = Entrypoint.from_command(["true"])
_GOOD = JobRequest("train", _TRUE)


def _tpu(kind: str, **changes: Any) -> JobRequest:
    return replace(_GOOD, resources=ResourceConfig.with_tpu(kind), **changes)


def _gpu(kind: str, count: int = 1) -> JobRequest:
    return replace(_GOOD, resources=ResourceConfig.with_gpu(kind, count))


def _cpu(**changes: Any) -> JobRequest:
    return replace(_GOOD, resources=ResourceConfig.with_cpu(**changes))


def _job(**changes: Any) -> JobRequest:
    return replace(_GOOD, **changes)


def _env(**variables: str) -> JobRequest:
    return replace(_GOOD, environment=EnvironmentConfig.create(env_vars=variables))


TABLE: dict[str, tuple[JobRequest, bool]] = {
    # Whether it is taken.
    "plain": (_GOOD, True),
    "a TPU": (_tpu("v5litepod-16"), True),
    "another spelling": (_tpu("v5e-16"), True),
    "three dimensions": (_tpu("v4-16"), True),
    "a size that is not made": (_tpu("v5litepod-17"), False),
    "a generation that is not made": (_tpu("v9-8"), False),
    "capitals": (_tpu("V5LITEPOD-16"), False),
    "a leading zero": (_tpu("v5litepod-016"), False),
    "no size": (_tpu("v5litepod"), False),
    "an odd topology": (_tpu("v4-14"), False),
    "GPUs": (_gpu("h100", 8), True),
    "GPUs as NVIDIA writes them": (_gpu("NVIDIA H100 80GB HBM3"), True),
    "GPUs of any type": (_gpu("auto", 2), True),
    "GPUs that are not made": (_gpu("h10"), False),
    "memory that is not made": (_gpu("h100-40gb"), False),
    "a TPU as GPUs": (_gpu("v5litepod-16"), False),
    "no GPU": (_gpu("h100", 0), False),
    "too many GPUs": (_gpu("h100", 65), False),
    "tasks as hosts": (_tpu("v5litepod-16", num_tasks=4), True),
    "tasks of two slices": (_tpu("v5litepod-16", num_tasks=8), True),
    "tasks that are no multiple of hosts": (_tpu("v5litepod-16", num_tasks=3), False),
    "tasks and slices": (
        _job(resources=ResourceConfig.with_tpu("v5litepod-16", slice_count=2), num_tasks=4),
        False,
    ),
    "tasks and slices that agree": (
        _job(resources=ResourceConfig.with_tpu("v5litepod-16", slice_count=2), num_tasks=8),
        True,
    ),
    "machines and tasks that differ": (
        _job(resources=ResourceConfig.with_cpu(replicas=2), num_tasks=3),
        False,
    ),
    "too many tasks": (_job(num_tasks=100_001), False),
    "too many replicas": (_cpu(replicas=100_001), False),
    "no core": (_cpu(cpu=0), False),
    "half a core": (_cpu(cpu=0.5), True),
    "no number of cores": (_cpu(cpu=float("nan")), False),
    "endless cores": (_cpu(cpu=float("inf")), False),
    "a tiny part of a core": (_cpu(cpu=0.0001), True),
    "no memory": (_cpu(ram="0"), False),
    "memory without a unit": (_cpu(ram="1073741824"), True),
    "a size in words": (_cpu(ram="a lot"), False),
    "a disk of a wrong unit": (_cpu(disk="1x"), False),
    "a name with a slash": (_job(name="a/b.c-d_e"), True),
    "a name with a space": (_job(name="a b"), False),
    "no name": (_job(name=""), False),
    "the name of a kind": (_job(name="job"), False),
    "a long name": (_job(name="a" * 200), True),
    "too long a name": (_job(name="a" * 201), False),
    "a name that ends in a dash": (_job(name="a-"), False),
    "retries without end": (_job(max_retries_failure=-1, max_retries_preemption=-1), True),
    "fewer retries than that": (_job(max_retries_failure=-2), False),
    "fewer retries of preemptions": (_job(max_retries_preemption=-2), False),
    "many retries": (_job(max_retries_failure=1_000_000), True),
    "a high priority": (_job(priority=1_000_000), True),
    "a low priority": (_job(priority=-5), True),
    "the highest priority": (_job(priority=2_147_483_647), True),
    "a port": (_job(ports=["http"]), True),
    "a port with a dash": (_job(ports=["my-port"]), True),
    "a port with an underscore": (_job(ports=["my_port"]), True),
    "a port with a space": (_job(ports=["my port"]), False),
    "a port with a digit": (_job(ports=["8080"]), False),
    "a port without a name": (_job(ports=[""]), False),
    "a port twice": (_job(ports=["a", "a"]), False),
    "ports of one variable": (_job(ports=["a-b", "a_b"]), True),
    "a variable": (_env(NAME="value"), True),
    "a variable with an equals sign": (_env(**{"a=b": "c"}), False),
    "a variable without a name": (_env(**{"": "c"}), False),
    "a variable with a null byte": (_env(A="\0"), False),
    "a variable of fray": (_env(FRAY_JOB_ID="x"), True),
    "a variable in small letters": (_env(a="x"), True),
    "a variable with a dash": (_env(**{"a-b": "x"}), True),
    "no time": (_job(timeout_seconds=0), False),
    "time before now": (_job(scheduling_timeout_seconds=-1), False),
    "a short grace": (_job(stop_grace_seconds=0.5), True),
    "a label": (_job(labels={"team": "rl"}), True),
    "a label with capitals": (_job(labels={"Team": "R L"}), True),
    "a label without a name": (_job(labels={"": "x"}), True),
    "a check": (_job(ports=["http"], health_check=HealthCheck(http="/", port="http")), True),
    "a check of nothing": (_job(health_check=HealthCheck()), False),
    "two checks": (_job(ports=["http"], health_check=HealthCheck(http="/", tcp=True)), False),
    "a check of a path without a slash": (
        _job(ports=["http"], health_check=HealthCheck(http="ready", port="http")),
        False,
    ),
    "a check of a port that is not there": (_job(health_check=HealthCheck(tcp=True, port="http")), False),
    "a check without a port": (_job(health_check=HealthCheck(tcp=True)), False),
    "a check of the only port": (_job(ports=["http"], health_check=HealthCheck(tcp=True)), True),
    "a check by a command": (_job(health_check=HealthCheck(exec=["true"])), True),
    "a check that never fails": (
        _job(health_check=HealthCheck(exec=["true"], threshold=-1)),
        False,
    ),
    "a check without pause": (_job(health_check=HealthCheck(exec=["true"], interval_seconds=0)), False),
}
"""A name, a request, and whether it is taken."""


def _messages() -> str:
    found = []
    for name, (request, taken) in TABLE.items():
        if name in ("no core", "no GPU", "no time"):  # a message has no such value: every client refuses it
            continue
        entrypoint = pb.Entrypoint(command=pb.Command(words=["true"]))
        environment = None
        if request.environment is not None:
            environment = pb.Environment(env_vars=dict(request.environment.env_vars))
        try:
            message = json_format.MessageToDict(request_to(request, "", entrypoint, environment))
        except InvalidRequestError:  # it cannot be written as a message
            continue
        found.append({"name": name, "taken": taken, "request": message})
    return json.dumps(found, indent=1) + "\n"


def test_the_messages_are_those_of_the_table() -> None:
    path = Path(__file__).with_name("verdicts.json")
    if os.environ.get("UPDATE_VERDICTS"):
        path.write_text(_messages())
    assert path.read_text() == _messages(), "write it with UPDATE_VERDICTS=1"


@pytest.mark.parametrize("name", TABLE)
def test_local_verdict(name: str) -> None:
    request, taken = TABLE[name]
    with LocalCluster() as cluster:
        if taken:
            cluster.launch(request)
        else:
            with pytest.raises(InvalidRequestError):
                cluster.launch(request)
