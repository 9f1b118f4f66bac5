"""Between the dataclasses of fray.cluster and the messages of the cluster API."""

from __future__ import annotations

import math
from collections.abc import Mapping

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from fray._pb import cluster_pb2 as pb
from fray.cluster.gpus import ANY_GPU
from fray.cluster.resources import CpuConfig, GpuConfig, ResourceConfig, TpuConfig, parse_size
from fray.cluster.types import (
    ActorChanges,
    ActorEndpoint,
    ActorId,
    AttemptInfo,
    Band,
    Choice,
    ChoiceReason,
    HealthCheck,
    JobGroupConfig,
    JobId,
    JobInfo,
    JobRequest,
    JobStatus,
    NameClash,
    Namespace,
    PassedAlternative,
    ReservationConfig,
    ReservationId,
    ReservationInfo,
    TaskInfo,
    TaskState,
    Termination,
    TerminationCause,
)

_DEFAULT = ResourceConfig()

_STATUS: Mapping[pb.JobStatus.ValueType, JobStatus] = {
    pb.JOB_STATUS_UNSPECIFIED: JobStatus.PENDING,
    pb.JOB_STATUS_PENDING: JobStatus.PENDING,
    pb.JOB_STATUS_RUNNING: JobStatus.RUNNING,
    pb.JOB_STATUS_SUCCEEDED: JobStatus.SUCCEEDED,
    pb.JOB_STATUS_FAILED: JobStatus.FAILED,
    pb.JOB_STATUS_STOPPED: JobStatus.STOPPED,
}
_BAND: Mapping[pb.Band.ValueType, Band] = {
    pb.BAND_PRODUCTION: Band.PRODUCTION,
    pb.BAND_INTERACTIVE: Band.INTERACTIVE,
    pb.BAND_BATCH: Band.BATCH,
}
_BAND_TO = {band: number for number, band in _BAND.items()}
_CLASH = {
    NameClash.ERROR: pb.NAME_CLASH_ERROR,
    NameClash.KEEP: pb.NAME_CLASH_KEEP,
    NameClash.RECREATE: pb.NAME_CLASH_RECREATE,
}


def request_to(
    request: JobRequest, namespace: str, entrypoint: pb.Entrypoint, environment: pb.Environment | None
) -> pb.JobRequest:
    """Return the message of a request, for which its blobs have been uploaded."""
    message = pb.JobRequest(
        name=request.name,
        entrypoint=entrypoint,
        resources=resources_to(request.resources, request.reservation_id),
        environment=environment,
        namespace=request.namespace or namespace,
        num_tasks=request.num_tasks,
        max_retries_failure=request.max_retries_failure,
        max_retries_preemption=request.max_retries_preemption,
        band=_BAND_TO[request.band] if request.band else pb.BAND_UNSPECIFIED,
        priority=request.priority,
        user=request.user or "",
        name_clash=_CLASH[request.name_clash],
        detached=request.detached,
        session=request.session,
        timeout=_duration(request.timeout_seconds),
        scheduling_timeout=_duration(request.scheduling_timeout_seconds),
        stop_grace=_duration(request.stop_grace_seconds),
        labels=dict(request.labels),
        health_check=_health_to(request.health_check) if request.health_check else None,
    )
    if request.resources.replicas == 1:
        message.resources.slices = 0  # as many as num_tasks needs
    message.resources.ports.extend(pb.Port(name=name) for name in request.ports)
    return message


def resources_to(resources: ResourceConfig, reservation_id: str | None = None) -> pb.Resources:
    """Return the message of resources."""
    message = pb.Resources(
        slices=resources.replicas,
        preemptible=resources.preemptible,
        regions=resources.regions or (),
        reservation_id=reservation_id or "",
    )
    if resources.accelerators:
        message.accelerators.extend(resources.accelerators)
        return message
    if resources.tpu:
        message.tpu = resources.tpu
        return message
    if resources.gpu is not None:
        kind = resources.gpu.type
        message.gpu.CopyFrom(pb.Gpu(type="" if kind == ANY_GPU else kind, count=resources.gpu.count))
    for name, to in (("cpu", "cpu"), ("ram", "memory"), ("disk", "disk")):
        value = getattr(resources, name)
        if resources.gpu is None or value != getattr(_DEFAULT, name):
            setattr(message, to, value if name == "cpu" else parse_size(value, f"resources.{name}"))
    return message


def _resources_of(message: pb.Resources, like: pb.Resources) -> ResourceConfig:
    """Return resources; `like` has the values that the message leaves out."""
    shape = message if message.tpu or message.HasField("gpu") or message.cpu else like
    preemptible = (message if message.HasField("preemptible") else like).preemptible
    regions = list(message.regions or like.regions) or None
    if shape.tpu:
        return ResourceConfig(
            device=TpuConfig(shape.tpu), replicas=message.slices, preemptible=preemptible, regions=regions
        )
    gpu = shape.HasField("gpu")  # a machine with GPUs has what is not stated of it
    return ResourceConfig(
        cpu=_DEFAULT.cpu if gpu and not shape.cpu else shape.cpu,
        ram=_DEFAULT.ram if gpu and not shape.memory else str(shape.memory),
        disk=_DEFAULT.disk if gpu and not shape.disk else str(shape.disk),
        device=GpuConfig(shape.gpu.type or ANY_GPU, shape.gpu.count) if gpu else CpuConfig(),
        replicas=message.slices,
        preemptible=preemptible,
        regions=regions,
    )


def _health_to(check: HealthCheck) -> pb.HealthCheck:
    return pb.HealthCheck(
        http=check.http,
        tcp=check.tcp,
        exec=check.exec,
        port=check.port,
        interval=_duration(check.interval_seconds),
        timeout=_duration(check.timeout_seconds),
        threshold=check.threshold,
    )


def group_to(group: JobGroupConfig, namespace: str) -> pb.JobGroup:
    """Return the message of a group."""
    return pb.JobGroup(
        name=group.name,
        namespace=group.namespace or namespace,
        same_region=group.same_region,
        same_zone=group.same_zone,
    )


def reservation_to(config: ReservationConfig, namespace: str) -> pb.ReservationConfig:
    """Return the message of a reservation."""
    least = resources_to(config.min_resources)
    most = resources_to(config.max_resources)
    least.preemptible = most.preemptible = config.preemptible
    return pb.ReservationConfig(
        name=config.name,
        min=least,
        max=most,
        priority=config.priority,
        ttl=_duration(config.ttl_seconds),
        preemptible=config.preemptible,
        namespace=namespace,
        detached=config.detached,
    )


def reservation_of(message: pb.ReservationInfo) -> ReservationInfo:
    """Return how a reservation stands."""
    like = message.config.max
    return ReservationInfo(
        reservation_id=ReservationId(message.reservation_id),
        allocated_resources=_resources_of(message.allocated, like),
        pending_resources=_resources_of(message.pending, like),
        jobs=[JobId(job_id) for job_id in message.job_ids],
        expires_at=_seconds(message.expires_at) if message.HasField("expires_at") else math.inf,
        pending_reasons=tuple(message.pending_reasons),
        released=message.released,
        free=message.free,
    )


def job_of(message: pb.JobInfo) -> JobInfo:
    """Return how a job stands."""
    return JobInfo(
        job_id=JobId(message.job_id),
        name=message.name,
        namespace=Namespace(message.namespace),
        status=_STATUS[message.status],
        reason=message.reason,
        pending_reasons=tuple(message.pending_reasons),
        parent_job_id=JobId(message.parent_job_id) if message.parent_job_id else None,
        user=message.user,
        band=_BAND.get(message.band),
        ready=message.ready,
        tasks=tuple(_task_of(task) for task in message.tasks),
        attempt=message.attempt,
        failures=message.failures,
        preemptions=message.preemptions,
        submitted_at=_time(message, "submitted_at"),
        started_at=_time(message, "started_at"),
        ended_at=_time(message, "ended_at"),
        attempts=tuple(_attempt_of(attempt) for attempt in message.attempts),
        group=message.group,
        reservation_id=ReservationId(message.reservation_id) if message.reservation_id else None,
        address=message.address,
        accelerators=tuple(message.accelerators),
        choice=_choice_of(message.choice) if message.HasField("choice") else None,
    )


_CHOICES: Mapping[pb.ChoiceReason.ValueType, ChoiceReason] = {
    pb.CHOICE_REASON_FIRST: ChoiceReason.FIRST,
    pb.CHOICE_REASON_BLOCKED: ChoiceReason.BLOCKED,
    pb.CHOICE_REASON_IDLE: ChoiceReason.IDLE,
    pb.CHOICE_REASON_FOUND: ChoiceReason.FOUND,
}


def _choice_of(message: pb.Choice) -> Choice:
    passed = tuple(PassedAlternative(p.accelerator, p.cause, p.text) for p in message.passed)
    return Choice(message.accelerator, _CHOICES.get(message.reason), passed)


def _task_of(message: pb.TaskInfo) -> TaskInfo:
    return TaskInfo(
        index=message.index,
        state=TaskState(message.state or TaskState.PENDING),  # of no state: it was only just made
        reason=message.reason,
        slice=message.slice,
        host=message.host,
        address=message.address,
        zone=message.zone,
        exit_code=message.exit_code if message.HasField("exit_code") else None,
        ports=dict(message.ports),
        tail=tuple(message.tail),
        termination=_termination_of(message),
    )


_CAUSES = {
    pb.TERMINATION_CAUSE_ACTOR_UNMADE: TerminationCause.ACTOR_UNMADE,
    pb.TERMINATION_CAUSE_ACTOR_INVALID: TerminationCause.ACTOR_INVALID,
    pb.TERMINATION_CAUSE_CALLABLE_REFUSED: TerminationCause.CALLABLE_REFUSED,
    pb.TERMINATION_CAUSE_CALLABLE_INVALID: TerminationCause.CALLABLE_INVALID,
    pb.TERMINATION_CAUSE_PROGRAM_MISSING: TerminationCause.PROGRAM_MISSING,
    pb.TERMINATION_CAUSE_PACKAGE_MISSING: TerminationCause.PACKAGE_MISSING,
    pb.TERMINATION_CAUSE_FINAL: TerminationCause.FINAL,
}


def _termination_of(message: pb.TaskInfo | pb.AttemptInfo) -> Termination | None:
    end = message.termination
    cause = _CAUSES.get(end.cause)  # a later version may have others
    return Termination(cause, end.message, end.type, end.trace) if cause else None


def _attempt_of(message: pb.AttemptInfo) -> AttemptInfo:
    return AttemptInfo(
        number=message.number,
        why=message.why,
        started_at=_time(message, "started_at"),
        ended_at=_time(message, "ended_at"),
        outcome=TaskState(message.outcome) if message.outcome else None,
        reason=message.reason,
        slices=tuple(message.slices),
        termination=_termination_of(message),
    )


def endpoint_of(message: pb.ActorEndpoint) -> ActorEndpoint:
    """Return where an actor listens."""
    return ActorEndpoint(
        actor_id=ActorId(message.actor_id),
        name=message.name,
        address=message.address,
        job_id=JobId(message.job_id),
        namespace=Namespace(message.namespace),
        metadata=dict(message.metadata),
        task=message.task,
    )


def changes_of(message: pb.WatchResponse) -> ActorChanges:
    """Return what changed among actors."""
    return ActorChanges(
        reset=message.reset,
        added=tuple(endpoint_of(endpoint) for endpoint in message.added),
        removed=tuple(ActorId(actor_id) for actor_id in message.removed),
    )


def duration(seconds: float) -> Duration:
    """Return the message of a time span."""
    nanoseconds = round(seconds * 1e9)
    return Duration(seconds=nanoseconds // 10**9, nanos=nanoseconds % 10**9)


def _duration(seconds: float | None) -> Duration | None:
    return None if seconds is None else duration(seconds)


def _time(message: pb.JobInfo | pb.AttemptInfo, field: str) -> float | None:
    return _seconds(getattr(message, field)) if message.HasField(field) else None  # type: ignore[arg-type]


def _seconds(time: Timestamp) -> float:
    return time.seconds + time.nanos / 1e9
