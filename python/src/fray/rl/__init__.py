"""Reinforcement learning runs: what people write in Python, and what computes.

    from fray.rl import BaseRolloutWorker

    class MyRolloutWorker(BaseRolloutWorker):
        def step(self, task):
            result = self._llm_client.completion(task["prompt"])
            return self._put_trajectory({**result, "reward": reward_of(task, result)})

The run itself, which is the data loader, the pools, the weight sync and the controller, is the program
`fray rl`; modules here reach it by actors. `python -m fray.rl ROLE` hosts them. docs/guides/nexrl.md
describes a run as a whole.

Start with `rollout.BaseRolloutWorker`, `algorithm.BaseAlgorithmProcessor` and `nexrl_types.Batch`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fray import _own_package as _own_package

if TYPE_CHECKING:
    from fray.rl.agent import AgentRolloutWorker as AgentRolloutWorker
    from fray.rl.algorithm import BaseAlgorithmProcessor as BaseAlgorithmProcessor
    from fray.rl.algorithms.grpo import GRPOProcessor as GRPOProcessor
    from fray.rl.algorithms.kl import AdaptiveKLController as AdaptiveKLController
    from fray.rl.algorithms.kl import FixedKLController as FixedKLController
    from fray.rl.config import Config as Config
    from fray.rl.config import ConfigError as ConfigError
    from fray.rl.data import BaseDataLoader as BaseDataLoader
    from fray.rl.data import BufferedDataLoader as BufferedDataLoader
    from fray.rl.data import JsonlDataLoader as JsonlDataLoader
    from fray.rl.data import MockDataLoader as MockDataLoader
    from fray.rl.errors import ErrorInfo as ErrorInfo
    from fray.rl.errors import ErrorReporter as ErrorReporter
    from fray.rl.errors import ErrorSeverity as ErrorSeverity
    from fray.rl.execution import execute as execute
    from fray.rl.execution import execute_async as execute_async
    from fray.rl.execution import set_logging_basic_config as set_logging_basic_config
    from fray.rl.launching import NexRLController as NexRLController
    from fray.rl.llm import LLMServiceClient as LLMServiceClient
    from fray.rl.mock import MockAlgorithmProcessor as MockAlgorithmProcessor
    from fray.rl.mock import MockRolloutWorker as MockRolloutWorker
    from fray.rl.module import NexRLModule as NexRLModule
    from fray.rl.nexrl_types import Batch as Batch
    from fray.rl.nexrl_types import ModelTag as ModelTag
    from fray.rl.nexrl_types import NexRLRole as NexRLRole
    from fray.rl.nexrl_types import Trajectory as Trajectory
    from fray.rl.references import RemoteDataLoader as RemoteDataLoader
    from fray.rl.references import RemoteValidator as RemoteValidator
    from fray.rl.references import TrainBatchPool as TrainBatchPool
    from fray.rl.references import TrajectoryPool as TrajectoryPool
    from fray.rl.references import WeightSyncController as WeightSyncController
    from fray.rl.resources import ActorWrapper as ActorWrapper
    from fray.rl.resources import RayActorWrapper as RayActorWrapper
    from fray.rl.resources import RayResourceManager as RayResourceManager
    from fray.rl.resources import ResourceManager as ResourceManager
    from fray.rl.rollout import BaseRolloutWorker as BaseRolloutWorker
    from fray.rl.simple import SimpleRolloutWorker as SimpleRolloutWorker
    from fray.rl.single_turn import SingleTurnMathRolloutWorker as SingleTurnMathRolloutWorker
    from fray.rl.tracking import ActivityTrackerProxy as ActivityTrackerProxy
    from fray.rl.train.client import TrainServiceClient as TrainServiceClient
    from fray.rl.train.service import TrainService as TrainService
    from fray.rl.train.worker import TrainWorker as TrainWorker
    from fray.rl.validator import Validator as Validator

# Programs import what they use: a loader needs no client of a service.
_HOMES = {
    "ActivityTrackerProxy": "tracking",
    "ActorWrapper": "resources",
    "AdaptiveKLController": "algorithms.kl",
    "AgentRolloutWorker": "agent",
    "BaseAlgorithmProcessor": "algorithm",
    "BaseDataLoader": "data",
    "BaseRolloutWorker": "rollout",
    "Batch": "nexrl_types",
    "BufferedDataLoader": "data",
    "Config": "config",
    "ConfigError": "config",
    "ErrorInfo": "errors",
    "ErrorReporter": "errors",
    "ErrorSeverity": "errors",
    "FixedKLController": "algorithms.kl",
    "GRPOProcessor": "algorithms.grpo",
    "JsonlDataLoader": "data",
    "LLMServiceClient": "llm",
    "MockAlgorithmProcessor": "mock",
    "MockDataLoader": "data",
    "MockRolloutWorker": "mock",
    "ModelTag": "nexrl_types",
    "NexRLController": "launching",
    "NexRLModule": "module",
    "NexRLRole": "nexrl_types",
    "RayActorWrapper": "resources",
    "RayResourceManager": "resources",
    "RemoteDataLoader": "references",
    "RemoteValidator": "references",
    "ResourceManager": "resources",
    "SimpleRolloutWorker": "simple",
    "SingleTurnMathRolloutWorker": "single_turn",
    "TrainBatchPool": "references",
    "TrainService": "train.service",
    "TrainServiceClient": "train.client",
    "TrainWorker": "train.worker",
    "Trajectory": "nexrl_types",
    "TrajectoryPool": "references",
    "Validator": "validator",
    "WeightSyncController": "references",
    "execute": "execution",
    "execute_async": "execution",
    "set_logging_basic_config": "execution",
}

__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"fray.rl.{_HOMES[name]}"), name)
    return value
