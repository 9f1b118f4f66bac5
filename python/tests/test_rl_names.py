"""Names in configurations: each type of the guide is accepted, or rejected with what to write instead."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

import fray.rl
from fray.rl import Config, ConfigError
from fray.rl.hosting import Place, make, places_of


@pytest.mark.parametrize(
    ("role", "section", "known"),
    [
        ("rollout_worker", "rollout_worker", ["mock", "simple", "agent", "single_turn_math"]),
        ("algorithm_processor", "algorithm", ["mock", "grpo"]),
        ("train_worker", "train_worker", ["default"]),
        ("data_loader", "data", ["mock", "jsonl"]),
    ],
)
def test_each_type_of_the_guide_is_a_class(
    role: str, section: str, known: list[str], tmp_path: Path
) -> None:
    (tmp_path / "items.jsonl").write_text('{"prompt": "x"}')
    service = {"inference_service": {"url": "http://127.0.0.1:9"}, "train_service": {"backend": "mock"}}
    for name in known:
        value, _ = make(
            Place(role),
            Config({section: {"type": name, "data_path": str(tmp_path / "items.jsonl")}, "service": service}),
        )
        assert value.health_check()
    with pytest.raises(ConfigError, match=rf'{section}.type = "other" is no class of Python'):
        make(Place(role), Config({section: {"type": "other"}, "service": service}))


@pytest.mark.parametrize("name", ["torch", "directory"])
def test_loaders_of_go_are_not_hosted_by_python(name: str) -> None:
    with pytest.raises(ConfigError, match=f'data.type = "{name}" .* host the role by the program "fray rl"'):
        make(Place("data_loader"), Config({"data": {"type": name, "num_workers": 4}}))


def test_counts_are_those_of_the_roles_in_go() -> None:
    config = Config({"data": {"num_workers": 4}, "rollout_worker": {"num_workers": 3}})
    assert places_of(["data_loader"], config) == [Place("data_loader")]
    assert len(places_of(["rollout_worker"], config)) == 3


def test_the_classes_of_the_guide_are_there() -> None:
    """Those of the package that programs import, with the names that it has for them."""
    names = """ActivityTrackerProxy AgentRolloutWorker BaseAlgorithmProcessor BaseDataLoader BaseRolloutWorker Batch
        ErrorInfo ErrorReporter ErrorSeverity LLMServiceClient ModelTag NexRLController NexRLModule NexRLRole
        RayActorWrapper RayResourceManager SimpleRolloutWorker TrainBatchPool TrainServiceClient TrainWorker
        Trajectory TrajectoryPool Validator WeightSyncController execute execute_async
        set_logging_basic_config""".split()
    assert [name for name in names if name not in fray.rl.__all__] == []
    assert [name for name in fray.rl.__all__ if isinstance(getattr(fray.rl, name), ModuleType)] == []


def test_public_classes_and_methods_are_described() -> None:
    """Of all that programs import; methods that only override may be described where they are first."""
    missing = []
    for name in fray.rl.__all__:
        kind = getattr(fray.rl, name)
        if not isinstance(kind, type) or not kind.__module__.startswith("fray.rl"):
            continue
        if not kind.__doc__:
            missing.append(name)
        for method, value in vars(kind).items():
            if method.startswith("_") or not callable(getattr(kind, method)):
                continue
            if not getattr(value, "__doc__", None) and not getattr(kind, method).__doc__:
                missing.append(f"{name}.{method}")
    assert missing == []
