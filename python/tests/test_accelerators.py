"""Alternatives: what resources name, and what a cluster is asked for."""

from __future__ import annotations

import pytest

from fray._pb import cluster_pb2 as pb
from fray.cluster import (
    Choice,
    ChoiceReason,
    Entrypoint,
    GpuConfig,
    InvalidRequestError,
    JobRequest,
    LocalCluster,
    PassedAlternative,
    ReservationConfig,
    ReservationId,
    ResourceConfig,
    TpuConfig,
)
from fray.cluster.check import check_request, check_reservation
from fray.cluster.remote.convert import job_of, resources_to


def test_alternatives_in_order() -> None:
    resources = ResourceConfig.with_accelerators(["v5litepod-16", "h100:8", "l4"], slice_count=2)
    assert resources.device == TpuConfig("v5litepod-16")
    assert list(resources.alternatives) == [GpuConfig("h100", 8), GpuConfig("l4", 1)]
    message = resources_to(resources)
    assert list(message.accelerators) == ["v5litepod-16", "h100:8", "l4:1"]
    assert message.slices == 2
    assert not message.tpu
    assert not message.HasField("gpu")
    assert not message.cpu


def test_one_device_is_no_choice() -> None:
    message = resources_to(ResourceConfig.with_accelerators(["v5litepod-16"]))
    assert message.tpu == "v5litepod-16"
    assert not message.accelerators


@pytest.mark.parametrize("accelerators", [[], ["h100:many"]])
def test_wrong_lists(accelerators: list[str]) -> None:
    with pytest.raises(InvalidRequestError):
        ResourceConfig.with_accelerators(accelerators)


def test_a_description_has_the_choice() -> None:
    passed = [pb.PassedAlternative(accelerator="v5litepod-16", cause="capacity", text="none in us-east5-b")]
    choice = pb.Choice(accelerator="h100:8", reason=pb.CHOICE_REASON_BLOCKED, passed=passed)
    info = job_of(pb.JobInfo(accelerators=["v5litepod-16", "h100:8"], choice=choice))
    assert info.accelerators == ("v5litepod-16", "h100:8")
    of_first = PassedAlternative("v5litepod-16", "capacity", "none in us-east5-b")
    assert info.choice == Choice("h100:8", ChoiceReason.BLOCKED, (of_first,))
    assert job_of(pb.JobInfo()).choice is None


@pytest.mark.parametrize(
    ("accelerators", "tasks", "mistake"),
    [
        (["v4-16", "v5p-16"], 4, ""),
        (["h100:8", "l4:4"], 3, ""),
        (["v4-16", "v4-8"], 2, r"different numbers of hosts.*\(v4-16 2, v4-8 1\)"),
        (["v4-16", "h100:8"], 2, "different numbers of hosts"),
        (["v4-16", "h100:8"], 1, ""),
    ],
)
def test_numbers_of_tasks(accelerators: list[str], tasks: int, mistake: str) -> None:
    resources = ResourceConfig.with_accelerators(accelerators)
    request = JobRequest("train", Entrypoint.from_command(["true"]), resources, num_tasks=tasks)
    if mistake:
        with pytest.raises(InvalidRequestError, match=mistake):
            check_request(request)
    else:
        check_request(request)


def test_reserved_slices_are_of_one_kind() -> None:
    both = ResourceConfig.with_accelerators(["v4-8", "h100:8"])
    with pytest.raises(InvalidRequestError, match="name one accelerator"):
        check_reservation(ReservationConfig(both, both))
    entrypoint = Entrypoint.from_command(["true"])
    request = JobRequest("train", entrypoint, both, reservation_id=ReservationId("pool"))
    with pytest.raises(InvalidRequestError, match="those of the reservation"):
        check_request(request)


def test_a_job_in_this_process_has_the_first() -> None:
    with LocalCluster() as cluster:
        resources = ResourceConfig.with_accelerators(["v4-8", "h100:8"])
        job = cluster.launch(JobRequest("train", Entrypoint.from_callable(int), resources))
        info = cluster.wait(job, raise_on_failure=True)
    assert info.accelerators == ("v4-8", "h100:8")
    assert info.choice == Choice("v4-8", ChoiceReason.FIRST)
