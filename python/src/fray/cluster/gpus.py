"""Types of NVIDIA GPUs and how people and tools write them."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from pathlib import Path

_NO_PART = {"nvidia", "tesla", "geforce", "pcie", "nvl", "sxm"}
_MEMORY = re.compile(r"(\d+)gb?")

ANY_GPU = "auto"
"""The type that stands for whatever GPUs the provider has."""


@functools.cache
def gpu_types() -> Mapping[str, int]:
    """Return the GPU types that there are, and how many GB of memory each has.

    The table is written from that of the configuration language, by the tests of package accelerators.
    """
    text = Path(__file__).with_name("gpu_types.txt").read_text()
    return {kind: int(memory) for kind, memory in (line.split() for line in text.splitlines())}


def canonical_gpu(name: str) -> str:
    """Return the type that a name means, such as "h100" for "NVIDIA H100 80GB HBM3"; "" if there is none.

    Where one type has variants by memory, the one without its size in its name is meant unless the size is
    stated.
    """
    base, memory = _parts(name)
    for wanted in (base, base.removeprefix("rtx")):
        for kind, has in gpu_types().items():
            is_base, is_memory = _parts(kind)
            if is_base == wanted and (memory == has or (not memory and not is_memory)):
                return kind
    return ""


def _parts(name: str) -> tuple[str, int]:
    """Return the name without maker, form factor and separators, and the memory that it states, or 0."""
    base, memory = "", 0
    for word in re.split(r"[ _/-]+", name.lower()):
        size = _MEMORY.fullmatch(word)
        if base and size:
            memory = int(size[1])
        elif word not in _NO_PART and not word.startswith(("sxm", "hbm")):
            base += word
    return base, memory
