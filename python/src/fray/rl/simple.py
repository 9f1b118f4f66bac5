"""A rollout worker that completes the prompt of each task once."""

from __future__ import annotations

from typing import Any

from fray.rl.rollout import BaseRolloutWorker


class SimpleRolloutWorker(BaseRolloutWorker):
    """Completes the field `prompt` of its tasks.

    The trajectory has what the completion returned, the other fields of the task, and `model_tag`.
    """

    def step(self, task: dict[str, Any]) -> str | None:
        """Complete the prompt and pass the trajectory on; None if the task has no prompt."""
        prompt = task.get("prompt")
        if prompt is None:
            return None
        result = self._llm_client.completion(prompt)
        trajectory = {**task, **result, "model_tag": self._llm_client._model_tag}
        return self._put_trajectory(self._truncate(trajectory))
