"""Makes fray's own requests of marin-fray's. What no cluster of fray has is rejected, by its name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from fray import cluster, types
from fray.cluster import InvalidRequestError
from fray.v2 import ActorOptions


def job_request(request: types.JobRequest, adopt_existing: bool) -> cluster.JobRequest:
    """Return a job as fray.cluster launches it.

    Raises:
        InvalidRequestError: it asks for what fray does not have.
    """
    _reject("request", {"processes_per_task": request.processes_per_task not in (0, 1)})
    return cluster.JobRequest(
        name=request.name,
        entrypoint=entrypoint(request.entrypoint),
        resources=resources(request.resources, request.replicas),
        environment=environment(request.environment, request.resources.image),
        max_retries_failure=max(request.max_retries_failure, request.max_task_failures),
        max_retries_preemption=request.max_retries_preemption,
        priority=request.priority,
        timeout_seconds=_seconds(request.timeout),
        name_clash=cluster.NameClash.KEEP if adopt_existing else cluster.NameClash.ERROR,
    )


def entrypoint(given: types.Entrypoint) -> cluster.Entrypoint:
    """Return what the tasks run."""
    call, program = given.callable_entrypoint, given.binary_entrypoint
    if call is not None:
        return cluster.Entrypoint.from_callable(call.callable, tuple(call.args), dict(call.kwargs))
    if program is not None:
        return cluster.Entrypoint.from_command([program.command, *program.args])
    raise InvalidRequestError.of("entrypoint", "it has neither a function nor a program")


def resources(given: types.ResourceConfig, replicas: int | None = None) -> cluster.ResourceConfig:
    """Return what each task needs; replicas of a TPU are machines there and slices here.

    Alternatives of GPUs have as many of them as the first.
    """
    unknown = ("zone", "target_cluster", "container_profile")
    _reject("resources", {name: bool(getattr(given, name)) for name in unknown})
    count = given.replicas if replicas is None else replicas
    regions = None if given.regions is None or types.ANY_REGION in given.regions else list(given.regions)
    match given.device:
        case types.TpuConfig(variant=variant):
            machines = types.get_tpu_topology(variant).vm_count
            if count == 1:  # of a device that was given without builders
                count = machines
            if count % machines:
                problem = (
                    f"{count} replicas are no whole number of slices: a {variant} has {machines} machines"
                )
                raise InvalidRequestError.of("replicas", problem)
            return cluster.ResourceConfig.with_accelerators(
                [variant, *(given.device_alternatives or ())],
                slice_count=count // machines,
                preemptible=given.preemptible,
                regions=regions,
            )
        case types.GpuConfig(variant=variant, count=gpus):
            found = cluster.ResourceConfig.with_gpu(
                variant,
                gpus,
                cpu=given.cpu,
                ram=given.ram,
                disk=given.disk,
                replicas=count,
                preemptible=given.preemptible,
                regions=regions,
            )
            found.alternatives = [cluster.GpuConfig(other, gpus) for other in given.device_alternatives or ()]
            return found
        case _:
            return cluster.ResourceConfig.with_cpu(
                cpu=given.cpu,
                ram=given.ram,
                disk=given.disk,
                replicas=count,
                preemptible=given.preemptible,
                regions=regions,
            )


def environment(given: types.EnvironmentConfig | None, image: str | None) -> cluster.EnvironmentConfig | None:
    """Return where tasks find their programs."""
    if given is None:
        return cluster.EnvironmentConfig.create(image=image) if image else None
    unknown = ("pip_packages", "secrets", "setup_scripts", "sync_packages")
    _reject("environment", {name: bool(getattr(given, name)) for name in unknown})
    return cluster.EnvironmentConfig.create(
        project=given.workspace,
        image=image or given.docker_image,
        extras=list(given.extras),
        env_vars=dict(given.env_vars),
    )


def actor_options(
    config: types.ActorConfig, given: types.EnvironmentConfig | None, image: str | None
) -> ActorOptions:
    """Return how an actor lives."""
    limits = (config.max_task_retries, config.max_restarts)
    return ActorOptions(
        environment=environment(given, image),
        max_concurrency=config.max_concurrency,
        max_restarts=next((limit for limit in limits if limit is not None), -1),
    )


def _reject(where: str, given: Mapping[str, bool]) -> None:
    names = _listed(name for name, there in given.items() if there)
    if names:
        raise InvalidRequestError.of(where, f"fray has no {names}; leave them out")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def _seconds(span: Any) -> float | None:
    if span is None or isinstance(span, (int, float)):
        return span
    return span.total_seconds() if isinstance(span, timedelta) else float(span.to_seconds())
