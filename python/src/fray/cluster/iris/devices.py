"""Accelerators as Iris knows them: variants of TPUs and GPUs, with how many a machine has."""

from __future__ import annotations

from dataclasses import dataclass

from fray.cluster.check import canonical_tpu, tpu_types
from fray.cluster.gpus import ANY_GPU, canonical_gpu
from fray.cluster.resources import CpuConfig, GpuConfig, ResourceConfig, TpuConfig

_ONE_CORE = ("v5litepod", "v6e")  # types whose number counts chips, not cores of which a chip has two


@dataclass(frozen=True)
class Device:
    """What one task computes on."""

    kind: str
    """"tpu" or "gpu", as Iris's messages have it."""
    variant: str
    hosts: int
    """How many machines one slice has; of GPUs each machine is one."""
    count: int
    """How many chips or GPUs each machine has."""

    @property
    def shape(self) -> tuple[str, int, int]:
        """What alternatives have in common, as a job asks for one number of tasks, and of chips of each."""
        return self.kind, self.hosts, self.count


def devices_of(resources: ResourceConfig) -> list[Device]:
    """Return the accelerators that would do, in order of preference; none for processors alone."""
    found = (resources.device, *resources.alternatives)
    return [_device(each) for each in found if not isinstance(each, CpuConfig)]


def _device(given: TpuConfig | GpuConfig) -> Device:
    return _tpu(given.type) if isinstance(given, TpuConfig) else _gpu(given.type, given.count)


def _gpu(name: str, count: int) -> Device:
    return Device("gpu", name if name == ANY_GPU else canonical_gpu(name) or name, 1, count)


def _tpu(name: str) -> Device:
    """Return a TPU slice.

    The number in a type counts cores, of which chips have two, or chips in some types
    (cloud.google.com/tpu/docs/system-architecture-tpu-vm).
    """
    variant = canonical_tpu(name)
    hosts = tpu_types().get(variant, 1)
    generation, _, size = variant.rpartition("-")
    cores = 1 if generation in _ONE_CORE else 2
    return Device("tpu", variant, hosts, int(size) // cores // hosts if size.isdecimal() else 0)
