"""What a job needs: accelerators, processors, memory, disk, and where."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from fray.cluster.errors import InvalidRequestError

_SIZE = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*([a-zA-Z]*)\s*")
_PREFIXES = "kmgtp"


def parse_size(text: str, field_name: str = "size") -> int:
    """Return the number of bytes that a size such as "512m", "8g" or "1.5TiB" means.

    Units are those of fray's configuration language: k, m, g, t and p, alone or with i or iB, are powers
    of 1024; with B they are powers of 1000.

    Raises:
        InvalidRequestError: `text` is no size, or less than a byte. It names `field_name`.
    """
    match = _SIZE.fullmatch(text)
    factor = _unit(match[2].lower()) if match else None
    if match is None or factor is None:
        message = f'"{text}" is no size: write a number with a unit, such as "512m", "8g" or "1.5TiB"'
        raise InvalidRequestError.of(field_name, message)
    from fractions import Fraction  # rarely needed

    size = int(Fraction(match[1].rstrip(".") if match[1] != "." else "0") * factor)
    if not 0 < size < 1 << 63:
        message = f'"{text}" is out of range: a size is at least one byte and less than 8 EiB'
        raise InvalidRequestError.of(field_name, message)
    return size


def _unit(unit: str) -> int | None:
    if unit in ("", "b"):
        return 1
    power = _PREFIXES.find(unit[0]) + 1
    if power == 0 or unit[1:] not in ("", "i", "ib", "b"):
        return None
    return int((1000 if unit[1:] == "b" else 1024) ** power)


@dataclass(frozen=True)
class CpuConfig:
    """No accelerator."""


@dataclass(frozen=True)
class TpuConfig:
    """A TPU slice."""

    type: str
    """The accelerator type, such as "v5litepod-16"."""


@dataclass(frozen=True)
class GpuConfig:
    """GPUs of one machine."""

    type: str = "auto"
    """The type as NVIDIA or a cloud writes it, such as "h100" or "nvidia-h100-80gb"; "auto": any there is."""
    count: int = 1
    """How many each machine has."""


DeviceConfig: TypeAlias = CpuConfig | TpuConfig | GpuConfig
"""What computes: nothing but processors, a TPU slice, or machines with GPUs."""


@dataclass
class ResourceConfig:
    """What one job needs.

    With a TPU, `cpu`, `ram` and `disk` are what its hosts have, and the values here have no effect. With GPUs
    they are what a machine has at least; their defaults leave it to the machine.
    """

    cpu: float = 1
    """Cores of each task."""
    ram: str = "128m"
    """Memory of each task, see `parse_size`."""
    disk: str = "1g"
    """Disk of each task, see `parse_size`."""
    device: DeviceConfig = field(default_factory=CpuConfig)
    replicas: int = 1
    """How many slices, or machines without a TPU. All start together, as one gang."""
    preemptible: bool = True
    """Whether the machines may be taken away at any time, which makes them cheap."""
    regions: Sequence[str] | None = None
    """Where it may run; None: where its parent runs, or anywhere."""

    @classmethod
    def with_tpu(
        cls,
        tpu_type: str,
        *,
        slice_count: int = 1,
        preemptible: bool = True,
        regions: Sequence[str] | None = None,
    ) -> ResourceConfig:
        """Return `slice_count` TPU slices of a type such as "v5litepod-16"."""
        return cls(device=TpuConfig(tpu_type), replicas=slice_count, preemptible=preemptible, regions=regions)

    @classmethod
    def with_gpu(
        cls,
        gpu_type: str = "auto",
        count: int = 1,
        *,
        cpu: float = 1,
        ram: str = "128m",
        disk: str = "1g",
        replicas: int = 1,
        preemptible: bool = True,
        regions: Sequence[str] | None = None,
    ) -> ResourceConfig:
        """Return `replicas` machines with `count` GPUs each, of a type such as "h100"; "auto" is any type."""
        return cls(
            cpu=cpu,
            ram=ram,
            disk=disk,
            device=GpuConfig(gpu_type, count),
            replicas=replicas,
            preemptible=preemptible,
            regions=regions,
        )

    @classmethod
    def with_cpu(
        cls,
        *,
        cpu: float = 1,
        ram: str = "128m",
        disk: str = "1g",
        replicas: int = 1,
        preemptible: bool = True,
        regions: Sequence[str] | None = None,
    ) -> ResourceConfig:
        """Return processors and memory without an accelerator."""
        return cls(cpu=cpu, ram=ram, disk=disk, replicas=replicas, preemptible=preemptible, regions=regions)

    @property
    def tpu(self) -> str:
        """The accelerator type, "" without one."""
        return self.device.type if isinstance(self.device, TpuConfig) else ""

    @property
    def gpu(self) -> GpuConfig | None:
        """The GPUs of each machine, None without any."""
        return self.device if isinstance(self.device, GpuConfig) else None

    def with_replicas(self, replicas: int) -> ResourceConfig:
        """Return the same for another number of slices; of none of them too."""
        return replace(self, replicas=replicas)
