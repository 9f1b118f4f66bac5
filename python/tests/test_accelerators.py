"""Alternatives: what resources name, and what a cluster is asked for."""

from __future__ import annotations

import pytest

from fray.cluster import GpuConfig, InvalidRequestError, ResourceConfig, TpuConfig
from fray.cluster.remote.convert import resources_to


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
