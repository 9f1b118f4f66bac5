"""What users of Ray's actors rely on happens here too, or differs for a reason that is written here.

parity/ray.json has what Ray did, several outcomes where its runs differ: `python -m parity` prints one run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fray.cluster import LocalCluster
from fray.v2 import Client
from fray.v2.client import _ClusterClient
from parity.engine import ends
from parity.fray_engine import Fray
from parity.scenarios import SCENARIOS

RAY: dict[str, list[Any]] = json.loads((Path(__file__).parent / "parity" / "ray.json").read_text())[
    "outcomes"
]

DIFFERENCES: dict[str, tuple[Any, str]] = {
    "a_constructor_that_raises_at_a_restart": (
        "dead",
        "the error of a call says that the actor has failed for good, with the constructor's error as reason",
    ),
    "wrong_arguments": (
        "BadArgumentsError",
        "an error of its own, so that it is not taken for a TypeError within the method",
    ),
    "a_waiting_call_is_cancelled": (
        ["cancelled", 0, 0],
        "a call that is reported as cancelled never runs; in Ray it may",
    ),
    "a_stream_that_is_left_ends": (
        [0, True],
        "the generator is closed when its caller leaves the loop; in Ray it stays suspended",
    ),
    "a_group_that_is_not_declared": (
        "the actor could not be created",
        "an error of the creation, not an assertion",
    ),
    "a_name_must_not_be_empty": ("the actor could not be created", "an error of the creation"),
}
"""What happens here instead, and why that is better."""


class Elsewhere:
    """A LocalCluster as programs of other processes see it: actors have jobs of their own there."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with LocalCluster(use_processes=True) as local:
        yield Elsewhere(local)


@pytest.mark.parametrize("name", SCENARIOS)
def test_parity(name: str, cluster: Any, tmp_path: Path) -> None:
    @contextmanager
    def another() -> Iterator[Client]:
        with _ClusterClient(cluster) as client:
            yield client

    with _ClusterClient(cluster) as client:
        engine = Fray(tmp_path, client, another)
        outcome = json.loads(json.dumps(ends(engine, lambda: SCENARIOS[name](engine))))
        engine.end()
    if name in DIFFERENCES:
        want, _ = DIFFERENCES[name]
        assert outcome == want
        assert RAY[name] != [want], "it is no difference any more"
    else:
        assert outcome in RAY[name]


def test_every_scenario_has_an_outcome_of_ray() -> None:
    assert RAY.keys() == SCENARIOS.keys()
    assert DIFFERENCES.keys() <= SCENARIOS.keys()
