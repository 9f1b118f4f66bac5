"""A rollout worker of conversations, in which the model may call tools and go on with their results."""

from __future__ import annotations

import inspect
import json
import logging
from collections.abc import Callable, Mapping
from typing import Any

from fray.rl.config import class_of, setting
from fray.rl.nexrl_types import Trajectory
from fray.rl.rollout import BaseRolloutWorker

_log = logging.getLogger("fray.rl")

MAX_TURNS = 8
_TYPES = {int: "integer", float: "number", bool: "boolean", str: "string", list: "array", dict: "object"}


class AgentRolloutWorker(BaseRolloutWorker):
    """Converses until the model calls no more tools, or for `max_turns` (8) answers.

    A task has `messages`, or a `prompt`, which is the first message of the user. `tools` of section
    `rollout_worker` are functions, "module:function" each; a subclass may define them by `tools` instead.
    What a tool returns, or the error that it raises, is the model's to read.

    One trajectory comes of a task: `messages` of all turns, `response` and `finish_reason` of the last one,
    `turns`, `tool_calls` (how many), and `reward` if the subclass defines `reward`. Where the service states
    tokens, `tokens` and `loss_mask` are of the whole conversation: 1 for what the model wrote.
    """

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self._max_turns = int(setting(config, "max_turns", MAX_TURNS))
        self._tools = dict(self.tools())

    def tools(self) -> Mapping[str, Callable[..., Any]]:
        """Return the functions that the model may call, by name. They take what it gives by name."""
        found = [class_of(path, "rollout_worker.tools") for path in setting(self._config, "tools", ())]
        return {function.__name__: function for function in found}

    def tool_schemas(self) -> list[dict[str, Any]]:
        """Return the tools as OpenAI's chat completions describe them, from their signatures."""
        return [_schema(name, function) for name, function in self._tools.items()]

    def parameters(self) -> Mapping[str, Any]:
        """Return parameters for each request, such as `logprobs`; none by default."""
        return {}

    def reward(self, task: dict[str, Any], trajectory: Trajectory) -> float | None:
        """Return the reward of a trajectory; None: it has none, as by default."""
        del task, trajectory
        return None

    def step(self, task: dict[str, Any]) -> str | None:
        """Converse about one task and pass the trajectory on; None if it has neither messages nor prompt."""
        messages = list(task.get("messages") or ())
        if not messages:
            if task.get("prompt") is None:
                return None
            messages = [{"role": "user", "content": task["prompt"]}]
        trajectory = self._conversation(task, messages)
        if (reward := self.reward(task, trajectory)) is not None:
            trajectory["reward"] = float(reward)
        return self._put_trajectory(self._truncate(trajectory))

    def _conversation(self, task: dict[str, Any], messages: list[dict[str, Any]]) -> Trajectory:
        options: dict[str, Any] = {"tools": self.tool_schemas()} if self._tools else {}
        options.update(self.parameters())
        transcript, called, answer = _Transcript(), 0, dict[str, Any]()
        turns = 0
        while turns < self._max_turns:
            turns += 1
            answer = self._llm_client.generate(list(messages), **options)
            transcript.add(answer)
            calls = answer["tool_calls"] or []
            messages.append(_assistant(answer["response"], calls))
            if not calls:
                break
            for call in calls:
                called += 1
                messages.append(self._called(call))
        return {
            **task,
            "messages": messages,
            "response": answer.get("response", ""),
            "finish_reason": answer.get("finish_reason"),
            "turns": turns,
            "tool_calls": called,
            "model_tag": self._llm_client._model_tag,
            **transcript.fields(),
        }

    def _called(self, call: Mapping[str, Any]) -> dict[str, Any]:
        """Return the message with what a tool returned, or why it did not."""
        name = call["function"]["name"]
        try:
            content = _text(self._result(name, call["function"].get("arguments") or "{}"))
        except Exception as err:  # the model may do better with it
            _log.info("%s: tool %s: %s", self._module_name, name, err)
            content = f"error: {type(err).__name__}: {err}"
        return {"role": "tool", "tool_call_id": call.get("id", ""), "name": name, "content": content}

    def _result(self, name: str, arguments: str) -> Any:
        if name not in self._tools:
            raise LookupError(f"there is no tool {name!r}; there are {', '.join(self._tools) or 'none'}")
        given = json.loads(arguments)
        if not isinstance(given, dict):
            raise TypeError(f"arguments are a JSON object, got {type(given).__name__}")
        return self._tools[name](**given)


class _Transcript:
    """The tokens of a conversation, as far as the service states them.

    Each answer's prompt begins with all that came before; what it has beyond that is text of tools and users.
    """

    def __init__(self) -> None:
        self._tokens: list[int] = []
        self._mask: list[int] = []
        self._logprobs: list[float] = []
        self._known = True

    def add(self, answer: Mapping[str, Any]) -> None:
        """Add an answer and its prompt."""
        tokens, split = answer.get("tokens"), answer.get("prompt_num_tokens", 0)
        if tokens is None or tokens[: len(self._tokens)] != self._tokens or split < len(self._tokens):
            self._known = False  # another template, which rewrites what came before
            return
        written, prompted = tokens[split:], tokens[len(self._tokens) : split]
        logprobs = answer.get("response_logprobs") or [0.0] * len(written)
        self._tokens = list(tokens)
        self._mask += [0] * len(prompted) + [1] * len(written)
        self._logprobs += [0.0] * len(prompted) + list(logprobs)

    def fields(self) -> dict[str, Any]:
        """Return the fields of the trajectory, none if the tokens are not known."""
        if not self._known or not self._tokens:
            return {}
        return {"tokens": self._tokens, "loss_mask": self._mask, "logprobs": self._logprobs}


def _assistant(content: str, calls: list[dict[str, Any]]) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": content}
    return {**message, "tool_calls": calls} if calls else message


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)


def _schema(name: str, function: Callable[..., Any]) -> dict[str, Any]:
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    parameters = [p for p in inspect.signature(function).parameters.values() if p.kind in named]
    hints = inspect.get_annotations(function, eval_str=True)
    properties = {p.name: {"type": _TYPES.get(hints.get(p.name, str), "string")} for p in parameters}
    required = [p.name for p in parameters if p.default is p.empty]
    described = {
        "name": name,
        "description": (inspect.getdoc(function) or "").partition("\n\n")[0],
        "parameters": {"type": "object", "properties": properties, "required": required},
    }
    return {"type": "function", "function": described}
