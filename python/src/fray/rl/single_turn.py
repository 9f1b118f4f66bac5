"""A rollout worker for problems whose answer is one number."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

from fray.rl.rollout import BaseRolloutWorker

_BOXED = re.compile(r"\\boxed\{([^{}]*)\}")
_NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:/\d+)?")


class SingleTurnMathRolloutWorker(BaseRolloutWorker):
    r"""Completes the prompt once; the reward is 1 if the response gives the number of `answer`, else 0.

    The number is that in the last \boxed{}, or after the last "####", or else the last one of the text.
    """

    def step(self, task: dict[str, Any]) -> str | None:
        """Complete the prompt and pass the trajectory on; None if the task lacks `prompt` or `answer`."""
        prompt, answer = task.get("prompt"), task.get("answer", task.get("ground_truth"))
        if prompt is None or answer is None:
            return None
        result = self._llm_client.completion(prompt)
        got, want = number_in(result["response"]), number_in(str(answer))
        reward = float(got is not None and got == want)
        trajectory = {**task, **result, "reward": reward, "model_tag": self._llm_client._model_tag}
        return self._put_trajectory(self._truncate(trajectory))


def number_in(text: str) -> Fraction | None:
    """Return the number that a text gives as its answer, None if there is none."""
    boxed = _BOXED.findall(text)
    part = boxed[-1] if boxed else text.rpartition("####")[2]
    found = _NUMBER.findall(part)
    if not found:
        return None
    try:
        return Fraction(found[-1].replace(",", ""))
    except (ValueError, ZeroDivisionError):
        return None
