"""The driver of a slice on Ray (providers/ray/driver), without Ray itself."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

PROGRAM = Path(__file__).parents[2] / "providers" / "ray" / "driver" / "fray_driver.py"


@pytest.fixture(name="module")
def _module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fray_driver", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def driver(module: ModuleType) -> Any:
    """Return the driver of the third submission of a slice of one host."""
    launch = {"namespace": "fray", "bundles": [{"CPU": 1}], "args": [], "digest": ""}
    return module.Driver(
        {
            "job_submission_id": "fray_one_3",
            "fray-slice": "one",
            "fray-attempt": "3",
            "fray-launch": json.dumps(launch),
        }
    )


@pytest.mark.parametrize(
    ("ids", "args"),
    [
        ([], []),
        (["3"], ["--gpus", "3"]),
        (["0", "2"], ["--gpus", "0,2"]),
        (["GPU-8e1", "GPU-9f2"], []),  # the agent finds them in CUDA_VISIBLE_DEVICES
    ],
)
def test_agent_is_given_the_gpus_of_its_actor(module: ModuleType, ids: list[str], args: list[str]) -> None:
    """An agent is given the numbers of the GPUs that Ray gave its actor."""
    assert module.gpu_args(ids) == args


def test_agent_has_each_gpu_once(module: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent adds up what several --gpus name, so that there is one."""
    monkeypatch.setattr(module.tempfile, "tempdir", str(tmp_path))
    order = {"args": ["--slice", "one"], "dir": "/d", "gpus": ["0", "2"], "tpu": "v4-8"}
    args = module.agent_args(order, "10.0.0.1")
    assert args[:4] == ["--slice", "one", "--dir", "/d"]
    assert args[6:] == ["--address", "10.0.0.1", "--gpus", "0,2", "--simulated"]


def test_agent_without_gpus_sees_none(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent sees the GPUs of its actor, and not those of the node."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    assert module.agent_environment([])["CUDA_VISIBLE_DEVICES"] == ""
    assert module.agent_environment(["1"])["CUDA_VISIBLE_DEVICES"] == "1"


def test_only_a_node_that_is_listed_as_dead_ends_a_slice(module: ModuleType) -> None:
    """A list that lacks a node says nothing about it."""
    d = driver(module)
    d.nodes = {"a": 0, "b": 1}
    d.check_nodes([])
    d.check_nodes([{"NodeID": "a", "Alive": True}])
    with pytest.raises(module.EndedError, match="node b of host 1 died") as ended:
        d.check_nodes([{"NodeID": "a", "Alive": True}, {"NodeID": "b", "Alive": False}])
    assert ended.value.status == module.LOST


@pytest.mark.parametrize(
    ("submission", "metadata", "later"),
    [
        ("fray_one_4", {"fray-slice": "one", "fray-attempt": "4"}, True),
        ("fray_one_2", {"fray-slice": "one", "fray-attempt": "2"}, False),
        ("fray_two_4", {"fray-slice": "two", "fray-attempt": "4"}, False),
        ("someone-elses", {"fray-slice": "one", "fray-attempt": "4"}, False),
        ("fray_one_x", {"fray-slice": "one", "fray-attempt": "x"}, False),
        (None, {}, False),
    ],
)
def test_only_a_later_submission_withdraws(
    module: ModuleType, submission: str | None, metadata: dict[str, str], later: bool
) -> None:
    """A copy of a submission's metadata withdraws nothing."""
    assert driver(module).is_later(submission, metadata) is later
