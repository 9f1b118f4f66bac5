"""Namespaces, tokens, and what a fray cluster rejects."""

from __future__ import annotations

from pathlib import Path

import grpc
import pytest

from controller import TOKEN, Controller
from fray._pb import status_pb2
from fray.cluster import (
    AccessDeniedError,
    AlreadyExistsError,
    FieldError,
    FrayCluster,
    InvalidRequestError,
    JobGroupConfig,
    JobId,
    JobRequest,
    NotFoundError,
    RefusedError,
)
from test_fray_cluster import COMMAND, launched


@pytest.fixture(autouse=True)
def _no_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run where there is no project to ship."""
    (tmp_path / "nowhere").mkdir()
    monkeypatch.chdir(tmp_path / "nowhere")


def test_the_first_job_founds_a_namespace(controller: Controller) -> None:
    cluster = FrayCluster(controller.address, token=TOKEN)
    assert cluster.namespace == ""
    cluster.launch_group([JobRequest("a", COMMAND)], JobGroupConfig("pool"))
    assert cluster.namespace == "pool"
    cluster.launch(JobRequest("b", COMMAND))
    assert [job.request.namespace for job in controller.jobs.values()] == ["", "pool"]
    assert [job.name for job in cluster.list_jobs()] == ["a", "b"]
    cluster.close()


def test_jobs_stay_in_their_namespace(controller: Controller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FRAY_NAMESPACE", "rl")
    monkeypatch.setenv("FRAY_CLUSTER_TOKEN", TOKEN)
    cluster = FrayCluster.from_spec(f"fray://{controller.address}")
    cluster.launch(JobRequest("a", COMMAND))
    assert (cluster.namespace, launched(controller).namespace) == ("rl", "rl")
    cluster.close()


def rich_status(context: grpc.ServicerContext) -> None:
    request = status_pb2.BadRequest()
    request.field_violations.add(field="requests[2].resources.tpu", description='"v5litepod-17" is no TPU')
    status = status_pb2.Status(code=3, message="all of it again")
    status.details.add(type_url="type.googleapis.com/google.rpc.DebugInfo", value=b"\x0a\x01x")
    status.details.add(
        type_url="type.googleapis.com/google.rpc.BadRequest", value=request.SerializeToString()
    )
    context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    context.abort(grpc.StatusCode.INVALID_ARGUMENT, "all of it again")


def test_rejections_name_the_fields(controller: Controller, remote: FrayCluster) -> None:
    controller.refuse = rich_status
    with pytest.raises(InvalidRequestError) as caught:
        remote.launch(JobRequest("train", COMMAND))
    assert caught.value.fields == (FieldError("requests[2].resources.tpu", '"v5litepod-17" is no TPU'),)
    assert str(caught.value) == (
        'the request is invalid:\n  requests[2].resources.tpu: "v5litepod-17" is no TPU'
    )


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (grpc.StatusCode.ALREADY_EXISTS, AlreadyExistsError),
        (grpc.StatusCode.FAILED_PRECONDITION, RefusedError),
        (grpc.StatusCode.PERMISSION_DENIED, AccessDeniedError),
        (grpc.StatusCode.NOT_FOUND, NotFoundError),
        (grpc.StatusCode.INVALID_ARGUMENT, InvalidRequestError),
    ],
)
def test_statuses_are_exceptions(
    controller: Controller, remote: FrayCluster, code: grpc.StatusCode, error: type[Exception]
) -> None:
    controller.refuse = lambda context: context.abort(code, "because")
    with pytest.raises(error, match="because"):
        remote.launch(JobRequest("train", COMMAND))
    assert controller.outages.calls["Launch"] == 1  # not tried again


def test_a_wrong_token_is_rejected(controller: Controller) -> None:
    for token in ("", "wrong"):
        cluster = FrayCluster(controller.address, token=token)
        with pytest.raises(AccessDeniedError):
            cluster.poll(JobId("train"))
        cluster.close()


def test_a_token_that_expires_is_made_again(controller: Controller) -> None:
    tokens = iter(["wrong", TOKEN])
    cluster = FrayCluster(controller.address, token=lambda: next(tokens))
    with pytest.raises(AccessDeniedError):
        cluster.poll(JobId("train"))
    with pytest.raises(NotFoundError):
        cluster.poll(JobId("train"))
    cluster.close()
