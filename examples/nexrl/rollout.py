"""Rollout workers of the example: one that reverses, and an agent with a calculator."""

from typing import Any

import calculator
import reverse

from fray.rl.agent import AgentRolloutWorker
from fray.rl.rollout import BaseRolloutWorker


class ReverseRolloutWorker(BaseRolloutWorker):
    """Has a prompt completed once, and scores the response. In validation the policy is greedy."""

    def step(self, task: dict[str, Any]) -> str | None:
        prompt = task.get("prompt")
        if prompt is None:
            return None
        options: dict[str, Any] = {"logprobs": 1, "extra_body": {"return_token_ids": True}}
        if self._is_running_validate:
            options["temperature"] = 0
        result = self._llm_client.completion(prompt, **options)
        scores = reverse.scores(prompt, result["response"])
        trajectory = {
            "prompt": prompt,
            "response": result["response"],
            "finish_reason": result["finish_reason"],
            "prompts": result["tokens"][: result["prompt_num_tokens"]],
            "responses": result["response_tokens"],
            "log_probs": result["response_logprobs"],
            "reward": scores["reward"],
            "scores": {"exact_match": scores["exact_match"]},
            "group_id": task["group_id"],
            "run_id": task["run_id"],
            "data_source": task.get("data_source", "reverse"),
            "model_tag": self._llm_client._model_tag,
        }
        return self._put_trajectory(trajectory)


class CalculatorRolloutWorker(AgentRolloutWorker):
    """Has an expression worked out with the calculator; the reward is 1 for its value."""

    def tools(self) -> dict[str, Any]:
        return {"calculate": calculator.calculate}

    def parameters(self) -> dict[str, Any]:
        options: dict[str, Any] = {"logprobs": True, "extra_body": {"return_token_ids": True}}
        return options | ({"temperature": 0} if self._is_running_validate else {})

    def reward(self, task: dict[str, Any], trajectory: dict[str, Any]) -> float:
        return float(trajectory["response"] == str(task["answer"]))
