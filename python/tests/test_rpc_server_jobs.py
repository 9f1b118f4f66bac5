"""Servers in jobs."""

from __future__ import annotations

import socket

import pytest

from actors import PATIENCE, Caller
from fray.cluster import (
    ActorNotFoundError,
    Entrypoint,
    JobRequest,
    LocalCluster,
    Namespace,
    ResourceConfig,
)
from jobs import serve
from waiting import eventually


def find(cluster: LocalCluster) -> str:
    try:
        return cluster.metadata.lookup("member").address
    except ActorNotFoundError:
        return ""


def listens(address: str) -> bool:
    host, port = address.rsplit(":", 1)
    try:
        socket.create_connection((host, int(port)), PATIENCE).close()
    except OSError:
        return False
    return True


def request(namespace: Namespace) -> JobRequest:
    return JobRequest(
        name="member",
        entrypoint=Entrypoint.from_callable(serve),
        resources=ResourceConfig.with_cpu(cpu=1),
        namespace=namespace,
    )


def test_fact22_the_server_of_a_job_ends_with_it(local: LocalCluster) -> None:
    job_id = local.launch(request(local.namespace))
    eventually(lambda: find(local), PATIENCE)
    address = find(local)
    with Caller(address) as caller:
        assert caller.call("member", "whose") == [job_id, local.namespace]
        local.terminate(job_id)
        local.wait(job_id, timeout=PATIENCE)
        with pytest.raises(ActorNotFoundError):
            local.metadata.lookup("member")
        eventually(lambda: not listens(address), PATIENCE)
        eventually(lambda: caller.connection.closed, PATIENCE)
