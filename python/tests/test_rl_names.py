"""Names in configurations: each type of the guide is accepted, or rejected with what to write instead."""

from __future__ import annotations

import json
import re
from pathlib import Path
from types import ModuleType

import pytest

import fray.rl
from fray.rl import (
    Config,
    ConfigError,
    GRPOProcessor,
    LLMServiceClient,
    MockDataLoader,
    NexRLRole,
    TrainWorker,
)
from fray.rl.agent import MAX_TURNS
from fray.rl.algorithms.grpo import kl_controller
from fray.rl.config import load, section_of
from fray.rl.hosting import Place, make, places_of
from test_rl_hosting import BASE

KEYS = Path(__file__).parents[2] / "rl" / "config" / "keys.go"


@pytest.mark.parametrize(
    ("role", "section", "known"),
    [
        ("rollout_worker", "rollout_worker", ["mock", "simple", "agent", "single_turn_math"]),
        ("algorithm_processor", "algorithm", ["mock", "grpo"]),
        ("train_worker", "train_worker", ["default"]),
        ("data_loader", "data", ["mock", "jsonl"]),
    ],
)
def test_each_type_of_the_guide_is_a_class(role: str, section: str, known: list[str], tmp_path: Path) -> None:
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
    names = """ActivityTrackerProxy AgentRolloutWorker BaseAlgorithmProcessor BaseDataLoader BaseRolloutWorker
        Batch ErrorInfo ErrorReporter ErrorSeverity LLMServiceClient ModelTag NexRLController
        NexRLModule NexRLRole RayActorWrapper RayResourceManager SimpleRolloutWorker TrainBatchPool
        TrainServiceClient TrainWorker Trajectory TrajectoryPool Validator WeightSyncController execute
        execute_async set_logging_basic_config""".split()
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


def test_sections_have_what_their_roles_need() -> None:
    section = section_of(Config(BASE), NexRLRole.ROLLOUT_WORKER)
    assert (section.type, section.seed, section.key_list, section.inference_service.model_tag) == (
        "mock",
        3,
        ["group_id"],
        "policy",
    )
    assert section_of(Config(BASE), NexRLRole.ALGORITHM_PROCESSOR).batch_size == 2
    with pytest.raises(AttributeError, match="has no key 'x'; it has type"):
        section.x  # noqa: B018


def test_configurations_are_files_or_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps(BASE))
    assert load(str(path)) == load(json.dumps(BASE)) == Config(BASE)
    monkeypatch.setenv("FRAY_RL_CONFIG", str(path))
    assert load().rollout_worker.num_workers == 2
    path.write_text("{\n  1")
    with pytest.raises(ConfigError, match=r"run\.json:2:3: Expecting property name"):
        load()
    for text, problem in (
        ("", "there is no configuration"),
        ("absent.json", "cannot read"),
        ("[1]", "cannot read"),
    ):
        with pytest.raises(ConfigError, match=problem):
            load(text)


DEFAULT = re.compile(r'Path: (?:at \+ )?"([a-z_.]+)", Kind: \w+, Default: ([^,}]+)')
"""A row of the table of all keys, which the roles in Go read."""


def test_defaults_are_those_of_the_roles_in_go() -> None:
    """Modules of Python read the same document, without what it leaves out."""
    rows = dict(DEFAULT.findall(KEYS.read_text()))
    common = section_of(Config(), NexRLRole.ROLLOUT_WORKER)
    trained = TrainWorker(section_of(Config(), NexRLRole.TRAIN_WORKER))
    loader = MockDataLoader(Config())
    client = LLMServiceClient(Config({"url": "http://127.0.0.1:9"}))
    made = {
        "project_name": json.dumps(common.project_name),
        "experiment_name": json.dumps(common.experiment_name),
        "seed": str(common.seed),
        "out": json.dumps(common.out),
        "num_samples": str(len(loader)),
        "batch_size": str(loader._batch_size),
        "repeat_item": str(loader._repeat),
        "lease_ttl": f"{common.lease_ttl:g}",
        "train_worker.total_train_steps": str(trained._total),
        "train_worker.save_freq": str(trained._save_freq),
        "service.inference_service.max_retries": str(client._max_retries),
        "service.inference_service.timeout": f"{client._client.timeout.read:g}",
        "service.inference_service.sync_timeout": f"{client._sync_timeout:g}",
        "service.inference_service.freeze_for_weight_sync": str(client._freeze_for_weight_sync).lower(),
        "algorithm.update_fn": json.dumps(GRPOProcessor(Config())._update_fn),
        "algorithm.kl_penalty": json.dumps(str(GRPOProcessor(Config())._kind)),
        "algorithm.kl_ctrl.kl_coef": str(kl_controller(Config()).value),
        "rollout_worker.max_turns": str(MAX_TURNS),
    }
    assert {key: rows[key] for key in made} == made
    assert common.logger.backend == ["console"]
