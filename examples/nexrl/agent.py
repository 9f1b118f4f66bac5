"""An agent that learns to use a calculator: its policy, the service that answers with it, and its trainer.

In each turn the policy writes one token, an action: have the first operation of
what is left of the expression worked out, have the second one worked out, or
answer. It sees one token of the conversation so far, which stands for how far
the expression is. So it has a logit for each pair of the two, and learns which
operation comes first and that it must not answer before there is one number
left. The numbers are the calculator's.
"""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from calculator import TIGHT, Expression
from inference import Answer, InvalidRequestError, Json, Served, sampled, serve, temperature_of

from fray.rl.nexrl_types import Batch
from fray.rl.train.service import TrainService

FIRST, SECOND, ANSWER = ACTIONS = range(3)
IN_ORDER, SECOND_FIRST, ONE_LEFT, DONE = SEEN = range(len(ACTIONS), len(ACTIONS) + 4)
WORDS = ("first", "second", "answer", "in order", "second first", "one left", "done")  # by token
RATE = 2.0


def seen(expression: Expression) -> int:
    """The token of how far an expression is."""
    if len(expression.operators) < 2:
        return ONE_LEFT if expression.operators else DONE
    first, second = (TIGHT[each] for each in expression.operators[:2])
    return SECOND_FIRST if second > first else IN_ORDER


def read(messages: list[Json]) -> tuple[Expression, list[int]]:
    """What is left of a conversation's expression, and its tokens: what was seen, and the action, in turn."""
    try:
        expression = Expression.parse(next(m["content"] for m in messages if m["role"] == "user"))
    except (StopIteration, ValueError) as error:
        raise InvalidRequestError(f"messages: {str(error) or 'there is none of a user'}") from error
    results = {m.get("tool_call_id"): m["content"] for m in messages if m["role"] == "tool"}
    tokens = [seen(expression)]
    for message in messages:
        for call in message.get("tool_calls") or ():
            action = int(call["id"].rsplit("_", 1)[1])
            try:
                expression.replace(action, int(results[call["id"]]))
            except (KeyError, ValueError) as error:
                raise InvalidRequestError(
                    f"messages: the calculator has no result for {call['id']}"
                ) from error
            tokens += [action, seen(expression)]
    return expression, tokens


class CalculatorService(Served):
    """Answers conversations with the table of logits that it was given last."""

    models = ("calculator",)
    weights: np.ndarray  # (7, 3): by what was seen and the action; the rows of actions are not used

    def __init__(self, config: Mapping[str, Any]):
        super().__init__(np.zeros((len(WORDS), len(ACTIONS))))
        self.http = serve(self, config)

    def of(self, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
        table = arrays.get("table")
        if table is None or table.shape != (len(WORDS), len(ACTIONS)):
            raise ValueError("the weights are of another policy")
        return table

    def converse(self, messages: list[Json], tools: list[Json], request: Json) -> list[Answer]:
        if not any(tool.get("function", {}).get("name") == "calculate" for tool in tools):
            raise InvalidRequestError("tools: want the function calculate")
        expression, tokens = read(messages)
        table, version = self.served
        action, log_prob = sampled(table[tokens[-1]], temperature_of(request), request.get("seed"))
        answer = Answer([action], [log_prob], tokens, WORDS, version)
        if action == ANSWER:
            answer.text = str(expression.numbers[0])
        elif action >= len(expression.operators):
            answer.text = "There is no such operation."
        else:
            left, symbol, right = expression.operation(action)
            arguments = json.dumps({"left": left, "operator": symbol, "right": right})
            answer.calls = [
                {
                    "id": f"call_{len(tokens)}_{action}",
                    "type": "function",
                    "function": {"name": "calculate", "arguments": arguments},
                }
            ]
        return [answer]


class CalculatorTrainService(TrainService):
    """Trains the table by plain steps along the gradient.

    service.train_service.config has `learning_rate` (2).
    """

    def build(self, config: Mapping[str, Any]) -> None:
        self._rate = float((config.get("config") or {}).get("learning_rate", RATE))
        self._table = np.zeros((len(WORDS), len(ACTIONS)))

    def update(self, batch: Batch) -> dict[str, float]:
        """One step along the policy gradient of the advantages.

        R. Williams, "Simple statistical gradient-following algorithms for connectionist
        reinforcement learning", Machine Learning 8, 1992: the gradient of advantage * log p(action), by
        the logits, is advantage * (one-hot of the action - p).
        """
        tokens, mask, advantages = (
            np.asarray(batch.values[name]) for name in ("responses", "response_mask", "advantages")
        )
        rows, places = np.nonzero(mask)
        before, actions = tokens[rows, places - 1], tokens[rows, places]  # an action follows what was seen
        probabilities = np.exp(self._table - self._table.max(axis=-1, keepdims=True))
        probabilities /= probabilities.sum(axis=-1, keepdims=True)
        by_logits = advantages[rows, places][:, None] * (
            np.eye(len(ACTIONS))[actions] - probabilities[before]
        )
        gradient = np.zeros(self._table.shape)
        np.add.at(gradient, before, by_logits / max(1, len(rows)))
        self._table = self._table + self._rate * gradient
        return {"actor/grad_norm": float(np.linalg.norm(gradient)), "actor/turns": len(rows) / len(tokens)}

    def state(self) -> Mapping[str, Any]:
        return {"table": self._table}

    def restore(self, state: Mapping[str, Any]) -> None:
        self._table = state["table"]

    def weights(self) -> Mapping[str, Any]:
        return {"table": self._table}
