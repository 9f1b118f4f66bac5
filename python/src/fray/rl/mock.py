"""Modules that compute nothing, to try a run without models or services."""

from __future__ import annotations

from typing import Any

from fray.rl.algorithm import BaseAlgorithmProcessor
from fray.rl.llm import LLMServiceClient
from fray.rl.nexrl_types import DEFAULT_MODEL, Batch
from fray.rl.rollout import BaseRolloutWorker


class MockLLMServiceClient(LLMServiceClient):
    """Answers without a service: the prompt, reversed. It waits for weights as the real one does."""

    def _connect(self, config: Any) -> Any:
        del config
        return None

    def completion(self, prompt: str, **kwargs: Any) -> dict[str, Any]:
        """Return the prompt, reversed."""
        self._wait_for_weights()
        return {**kwargs, "prompt": prompt, "response": prompt[::-1], "finish_reason": "stop"}

    def generate(self, messages: list[dict[str, Any]], **kwargs: Any) -> dict[str, Any]:
        """Return the last message, reversed."""
        self._wait_for_weights()
        response = str(messages[-1].get("content") or "")[::-1]
        answer = {"response": response, "tool_calls": None, "finish_reason": "stop"}
        return {**kwargs, "messages": messages, **answer}


class MockRolloutWorker(BaseRolloutWorker):
    """Rolls tasks out without a service; the reward is 1 for prompts of even length, else 0."""

    def _make_client(self, config: Any) -> LLMServiceClient:
        return MockLLMServiceClient(config)

    def step(self, task: dict[str, Any]) -> str | None:
        """Make a trajectory of the prompt; None if the task has none."""
        prompt = task.get("prompt")
        if prompt is None:
            return None
        result = self._llm_client.completion(str(prompt))
        reward = float(len(str(prompt)) % 2 == 0)
        trajectory = {**task, **result, "reward": reward, "model_tag": self._llm_client._model_tag}
        return self._put_trajectory(self._truncate(trajectory))


class MockAlgorithmProcessor(BaseAlgorithmProcessor):
    """Passes batches on as they are."""

    def _fit(self, batch: Batch, update_fn: str) -> None:
        self._put_batch(Batch(batch.values, {"model_tag": DEFAULT_MODEL, **batch.metadata}), update_fn)
