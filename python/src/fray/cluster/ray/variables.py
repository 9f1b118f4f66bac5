"""The variables of tasks: as agents of a fray cluster set them, see docs/environment.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fray.cluster.context import JobContext
from fray.cluster.ray.records import Job, Place

_MEGASCALE_PORT = 8081  # libtpu's own
_OF_WORKERS = (  # what Ray sets for its own worker processes, and means nothing to programs
    "RAY_JOB_ID",
    "RAY_RAYLET_PID",
    "RAY_WORKER_ID",
    "RAY_NODE_ID",
    "RAY_LD_PRELOAD_ON_WORKERS",
    "RAY_CLIENT_MODE",
    "RAY_NODE_IP_ADDRESS",
    "RAY_RAYLET_NAME",
)


@dataclass(frozen=True)
class Seat:
    """One task of an attempt and where it sits."""

    job: Job
    attempt: int
    index: int
    places: Sequence[Place]
    coordinator: str = ""
    """host:port of JAX's coordinator; "" for a job of one task without an accelerator."""
    spec: str = ""
    """The FRAY_CLUSTER_SPEC of the task."""
    region: str = ""


def variables_of(
    seat: Seat, base: Mapping[str, str], own: Mapping[str, str], ports: Mapping[str, int]
) -> dict[str, str]:
    """Return the environment of a task: `base` of the Ray worker, TPU and JAX, the job's `own`, fray's."""
    request = seat.job.launch.request
    environ = {**without_workers(base), "PYTHONUNBUFFERED": "1"}
    if request.resources.tpu:
        environ.update(_tpu(seat))
    if len(seat.places) > 1 or request.resources.tpu:
        environ.update(_jax(seat))
    environ.update(own)
    context = JobContext(
        job_id=seat.job.job_id,
        job_name=request.name,
        namespace=seat.job.namespace,
        attempt=seat.attempt,
        task_index=seat.index,
        num_tasks=len(seat.places),
    )
    environ.update(context.variables())
    slices = list(dict.fromkeys(place.slice for place in seat.places))
    here = seat.places[seat.index]
    environ["FRAY_SLICE_INDEX"] = str(slices.index(here.slice))
    environ["FRAY_NUM_SLICES"] = str(len(slices))
    environ["FRAY_HOST_ADDRESS"] = here.address
    environ["FRAY_CLUSTER_SPEC"] = seat.spec
    if request.stop_grace_seconds:
        environ["FRAY_STOP_GRACE"] = f"{request.stop_grace_seconds:g}"
    if seat.region:
        environ["FRAY_REGION"] = seat.region
    for name, number in ports.items():
        environ[f"FRAY_PORT_{name.upper().replace('-', '_')}"] = str(number)
    return environ


def without_workers(base: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a Ray worker without those that concern that alone."""
    return {k: v for k, v in base.items() if not k.startswith("FRAY_") and k not in _OF_WORKERS}


def _jax(seat: Seat) -> dict[str, str]:
    return {
        "JAX_COORDINATOR_ADDRESS": seat.coordinator,
        "JAX_NUM_PROCESSES": str(len(seat.places)),
        "JAX_PROCESS_ID": str(seat.index),
    }


def _tpu(seat: Seat) -> dict[str, str]:
    here = seat.places[seat.index]
    slices = list(dict.fromkeys(place.slice for place in seat.places))
    environ = {
        "TPU_ACCELERATOR_TYPE": seat.job.launch.request.resources.tpu,
        "TPU_WORKER_ID": str(here.host),
        "TPU_WORKER_HOSTNAMES": ",".join(p.address for p in seat.places if p.slice == here.slice),
        "TPU_NAME": here.slice,
        "PJRT_DEVICE": "TPU",
        "JAX_PLATFORMS": "tpu,cpu",
    }
    if len(slices) > 1:
        environ["MEGASCALE_COORDINATOR_ADDRESS"] = f"{seat.places[0].address}:{_MEGASCALE_PORT}"
        environ["MEGASCALE_NUM_SLICES"] = str(len(slices))
        environ["MEGASCALE_SLICE_ID"] = str(slices.index(here.slice))
        environ["MEGASCALE_PORT"] = str(_MEGASCALE_PORT)
    return environ
