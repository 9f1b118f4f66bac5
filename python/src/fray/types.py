"""What is asked for, in the words of marin-fray's `fray.types`; `fray._marin.convert` makes fray's own of it.

For programs that were written for marin-fray, such as marin-zephyr. New ones use `fray.v2`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from typing import Any, Literal, Protocol, TypeAlias

from fray.cluster.check import tpu_types
from fray.cluster.resources import parse_size

DeviceKind: TypeAlias = Literal["cpu", "gpu", "tpu"]
TpuType: TypeAlias = str
"""An accelerator type of Google Cloud, such as "v5litepod-16"."""
GpuType: TypeAlias = str
"""A model, such as "H100"; "auto": any."""

ANY_REGION = "*"
"""As the only one of `regions`: anywhere, whatever the parent's is."""


@dataclass(frozen=True)
class TpuTopologyInfo:
    """How many parts a TPU slice has."""

    name: str
    chip_count: int
    host_count: int
    vm_count: int
    chips_per_vm: int


def get_tpu_topology(tpu_type: str) -> TpuTopologyInfo:
    """Return how many parts a slice of a type has.

    Raises:
        ValueError: there is no such type.
    """
    hosts = tpu_types().get(tpu_type)
    if hosts is None:
        raise ValueError(f'"{tpu_type}" is no TPU type; fray schema lists them')
    family, _, size = tpu_type.rpartition("-")
    # Google Cloud counts chips in the names of v5e and v6e, and cores, two on each chip, in the others.
    chips = int(size) if family in ("v5litepod", "v5e", "v6e") else int(size) // 2
    return TpuTopologyInfo(tpu_type, chips, hosts, hosts, chips // hosts)


@dataclass(frozen=True)
class CpuConfig:
    """No accelerator."""

    kind: DeviceKind = "cpu"
    variant: str = "cpu"

    def chip_count(self) -> int:
        """Return 0."""
        return 0

    def default_env_vars(self) -> dict[str, str]:
        """Return the variables that such jobs have unless they set them."""
        return {"JAX_PLATFORMS": "cpu"}


@dataclass(frozen=True)
class GpuConfig:
    """GPUs of one machine."""

    variant: GpuType
    kind: DeviceKind = "gpu"
    count: int = 1

    def chip_count(self) -> int:
        """Return the number of GPUs."""
        return self.count

    def default_env_vars(self) -> dict[str, str]:
        """Return the variables that such jobs have unless they set them."""
        return {"JAX_PLATFORMS": ""}


@dataclass(frozen=True)
class TpuConfig:
    """A TPU slice."""

    variant: TpuType
    kind: DeviceKind = "tpu"
    topology: str | None = None
    """Such as "2x2x1"; None: that of the type."""

    def chip_count(self) -> int:
        """Return the number of chips of one machine."""
        return get_tpu_topology(self.variant).chips_per_vm

    def vm_count(self) -> int:
        """Return the number of machines."""
        return get_tpu_topology(self.variant).vm_count

    def default_env_vars(self) -> dict[str, str]:
        """Return the variables that such jobs have unless they set them."""
        return {"JAX_PLATFORMS": ""}


DeviceConfig: TypeAlias = CpuConfig | GpuConfig | TpuConfig


@dataclass
class ResourceConfig:
    """What each task of a job needs, and how many start together."""

    cpu: float = 1
    ram: str = "4g"
    disk: str = "16g"
    device: DeviceConfig = field(default_factory=CpuConfig)
    preemptible: bool = True
    regions: Sequence[str] | None = None
    """None: those of the parent."""
    target_cluster: str | None = None
    zone: str | None = None
    replicas: int = 1
    """Tasks, one for each machine: of a TPU slice, its machines times the slices."""
    device_alternatives: Sequence[str] | None = None
    image: str | None = None
    container_profile: str | None = None

    def chip_count(self) -> int:
        """Return the number of chips of all tasks."""
        return self.device.chip_count() * self.replicas

    def scale(
        self,
        factor: float | None = None,
        /,
        *,
        cpu: float | None = None,
        ram: float | None = None,
        disk: float | None = None,
    ) -> ResourceConfig:
        """Return the same with other amounts: `factor` times all, or each by a factor of its own.

        Raises:
            ValueError: both are given.
        """
        if factor is not None and (cpu, ram, disk) != (None, None, None):
            raise ValueError("give one factor for all, or one each for cpu, ram and disk; not both")
        every = 1.0 if factor is None else factor
        by = {
            name: every if own is None else own for name, own in (("cpu", cpu), ("ram", ram), ("disk", disk))
        }
        return replace(
            self,
            cpu=self.cpu * by["cpu"],
            ram=_scaled(self.ram, by["ram"]),
            disk=_scaled(self.disk, by["disk"]),
        )

    @staticmethod
    def with_tpu(tpu_type: str | Sequence[str], *, slice_count: int = 1, **kwargs: Any) -> ResourceConfig:
        """Return `slice_count` slices of a TPU type, or of the first that can be had of several.

        Raises:
            ValueError: a type does not exist, or they have different numbers of machines or chips.
        """
        types = [tpu_type] if isinstance(tpu_type, str) else list(tpu_type)
        if not types:
            raise ValueError("tpu_type is empty; give a type such as v5litepod-16")
        shapes = {(found.vm_count, found.chips_per_vm) for found in map(get_tpu_topology, types)}
        if len(shapes) > 1:
            raise ValueError(
                f"{', '.join(types)} differ in how many machines, or chips of a machine, they have"
            )
        machines = get_tpu_topology(types[0]).vm_count
        amounts = {"cpu": 32, "ram": "128g", "disk": "50g", **kwargs}
        return ResourceConfig(
            device=TpuConfig(types[0]),
            replicas=slice_count * machines,
            device_alternatives=types[1:] or None,
            **amounts,
        )

    @staticmethod
    def with_gpu(gpu_type: str, count: int = 1, **kwargs: Any) -> ResourceConfig:
        """Return machines with `count` GPUs each."""
        return ResourceConfig(device=GpuConfig(gpu_type, count=count), **kwargs)

    @staticmethod
    def with_cpu(**kwargs: Any) -> ResourceConfig:
        """Return processors and memory without an accelerator."""
        return ResourceConfig(device=CpuConfig(), **kwargs)


def _scaled(size: str, factor: float) -> str:
    """Return a size times a factor, in the largest unit of which it is a whole number."""
    if factor == 1:
        return size
    scaled = round(parse_size(size) * factor)
    for power, unit in ((4, "t"), (3, "g"), (2, "m"), (1, "k")):
        if scaled and scaled % 1024**power == 0:
            return f"{scaled // 1024**power}{unit}"
    return f"{scaled}b"


@dataclass
class ActorConfig:
    """How an actor lives."""

    max_concurrency: int = 1
    """Calls at a time."""
    max_restarts: int | None = None
    """How often it is started again after it failed, unless `max_task_retries` is given; None: always. One
    that lost its machine is always started again."""
    max_task_retries: int | None = None
    """How often it is started again after it failed."""
    priority: int = 0
    """Has no effect: actors are of their job's priority."""


@dataclass(frozen=True)
class EnvironmentConfig:
    """Where tasks find their programs, modules and variables. Make one with `create_environment`."""

    workspace: str | None = None
    """A directory with a project."""
    docker_image: str | None = None
    pip_packages: Sequence[str] = ()
    env_vars: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    extras: Sequence[str] = ()
    setup_scripts: Sequence[str] | None = None
    sync_packages: Sequence[str] = ()

    def __post_init__(self) -> None:
        if bool(self.workspace) == bool(self.docker_image):
            raise ValueError("an environment has either a workspace or a docker_image")


def create_environment(
    workspace: str | None = None,
    docker_image: str | None = None,
    pip_packages: Sequence[str] | None = None,
    env_vars: Mapping[str, str] | None = None,
    extras: Sequence[str] | None = None,
    setup_scripts: Sequence[str] | None = None,
    sync_packages: Sequence[str] | None = None,
    secrets: Mapping[str, str] | None = None,
) -> EnvironmentConfig:
    """Return an environment, of the working directory unless another workspace or an image is given."""
    defaults = {"HF_DATASETS_TRUST_REMOTE_CODE": "1", "TOKENIZERS_PARALLELISM": "false"}
    return EnvironmentConfig(
        workspace=str(os.getcwd()) if workspace is None and docker_image is None else workspace,  # noqa: PTH109
        docker_image=docker_image,
        pip_packages=list(pip_packages or ()),
        env_vars={**defaults, **(env_vars or {})},
        secrets=dict(secrets or {}),
        extras=list(extras or ()),
        setup_scripts=setup_scripts,
        sync_packages=list(sync_packages or ()),
    )


@dataclass(frozen=True)
class BinaryEntrypoint:
    """A program with its arguments."""

    command: str
    args: Sequence[str] = ()


@dataclass(frozen=True)
class CallableEntrypoint:
    """A Python function with what it is called with."""

    callable: Callable[..., Any]
    args: Sequence[Any] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Entrypoint:
    """What the tasks of a job run: one of the two."""

    callable_entrypoint: CallableEntrypoint | None = None
    binary_entrypoint: BinaryEntrypoint | None = None

    @staticmethod
    def from_callable(
        c: Callable[..., Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Entrypoint:
        """Return an entrypoint that calls a function."""
        return Entrypoint(callable_entrypoint=CallableEntrypoint(c, args, dict(kwargs or {})))

    @staticmethod
    def from_binary(command: str, args: Sequence[str]) -> Entrypoint:
        """Return an entrypoint that runs a program."""
        return Entrypoint(binary_entrypoint=BinaryEntrypoint(command, args))


class Duration(Protocol):
    """A span of time, such as rigging.timing.Duration."""

    def to_seconds(self) -> float:
        """Return it in seconds."""
        ...


@dataclass
class JobRequest:
    """A job to submit."""

    name: str
    entrypoint: Entrypoint
    resources: ResourceConfig = field(default_factory=ResourceConfig)
    environment: EnvironmentConfig | None = None
    replicas: int | None = None
    """None: those of the resources."""
    processes_per_task: int = 1
    max_retries_failure: int = 0
    max_retries_preemption: int = 100
    max_task_failures: int = 0
    priority: int = 0
    timeout: Duration | timedelta | float | None = None
    """The longest an attempt may take; a number is of seconds."""

    def __post_init__(self) -> None:
        if " " in self.name:
            raise ValueError(f'the name "{self.name}" has a space, which names of jobs do not')
        if self.replicas is None:
            self.replicas = self.resources.replicas


class JobStatus(StrEnum):
    """Where a job is in its life."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"

    @staticmethod
    def finished(status: JobStatus) -> bool:
        """Return whether a job of that status stays as it is."""
        return status in (JobStatus.SUCCEEDED, JobStatus.FAILED, JobStatus.STOPPED)
