"""N86: conversations with tools become one trajectory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from fray.cluster import LocalCluster
from fray.rl import AgentRolloutWorker, SingleTurnMathRolloutWorker
from fray.rl.config import Config, ConfigError
from fray.rl.single_turn import number_in
from rl_run import Inference, Run, chat, inference


def add(a: int, b: int = 0) -> int:
    """Add two numbers.

    Of any size.
    """
    return a + b


@pytest.fixture
def run() -> Iterator[Run]:
    with LocalCluster() as cluster:
        run = Run(cluster)
        yield run
        run.server.shutdown()


@pytest.fixture
def service() -> Iterator[Inference]:
    with inference() as one:
        yield one


def worker_of(run: Run, service: Inference, kind: Any = AgentRolloutWorker, **options: Any) -> Any:
    worker = kind(
        Config({"inference_service": {"url": service.url}, "tools": [f"{__name__}:add"], **options})
    )
    worker.set_module_references(**run.references())
    return worker


def test_n86_tools_are_called_over_several_turns(run: Run, service: Inference) -> None:
    service.answers.extend(
        [
            chat(calls=[("add", '{"a": 1, "b": 2}'), ("add", '{"a": 3}')]),
            chat(calls=[("add", '{"a": 3, "b": 3}')]),
            chat(content="it is 6"),
        ]
    )

    class Rewarded(AgentRolloutWorker):
        def reward(self, task: dict[str, Any], trajectory: dict[str, Any]) -> float | None:
            return float(str(task["answer"]) in trajectory["response"])

    task = {"prompt": "1 + 2 + 3?", "answer": 6, "group_id": "g"}
    assert worker_of(run, service, Rewarded).step(task) == "success"
    ((_, _, trajectory),) = run.pool.put.values
    assert [(m["role"], m.get("content")) for m in trajectory["messages"]] == [
        ("user", "1 + 2 + 3?"),
        ("assistant", ""),
        ("tool", "3"),
        ("tool", "3"),
        ("assistant", ""),
        ("tool", "6"),
        ("assistant", "it is 6"),
    ]
    assert trajectory | {"messages": []} == {
        "messages": [],
        "prompt": "1 + 2 + 3?",
        "answer": 6,
        "group_id": "g",
        "response": "it is 6",
        "finish_reason": "stop",
        "turns": 3,
        "tool_calls": 3,
        "model_tag": "default",
        "reward": 1.0,
    }
    sent = [request["messages"] for _, request in service.requests.values]
    assert [len(messages) for messages in sent] == [1, 4, 6]
    assert sent[1][2] == {"role": "tool", "tool_call_id": "call-0", "name": "add", "content": "3"}
    (described,) = service.requests.values[0][1]["tools"]
    assert described["function"] == {
        "name": "add",
        "description": "Add two numbers.",
        "parameters": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a"],
        },
    }


@pytest.mark.parametrize(
    ("call", "content"),
    [
        (("add", '{"a": "x", "b": 1}'), "error: TypeError: "),
        (("add", '{"c": 1}'), "error: TypeError: "),
        (("add", "{"), "error: JSONDecodeError: "),
        (("add", "[1]"), "error: TypeError: arguments are a JSON object, got list"),
        (("sub", "{}"), "error: LookupError: there is no tool 'sub'; there are add"),
    ],
)
def test_n86_the_model_reads_what_went_wrong(
    run: Run, service: Inference, call: tuple[str, str], content: str
) -> None:
    service.answers.append(chat(calls=[call]))
    assert worker_of(run, service).step({"prompt": "?"}) == "success"
    message = service.requests.values[1][1]["messages"][-1]
    assert message["content"].startswith(content)


def test_n86_turns_are_limited(run: Run, service: Inference) -> None:
    service.answers.extend(chat(calls=[("add", '{"a": 1}')]) for _ in range(9))
    assert worker_of(run, service, max_turns=3).step({"messages": [{"role": "user", "content": "?"}]})
    trajectory = run.pool.put.values[0][2]
    assert (trajectory["turns"], trajectory["finish_reason"], len(service.requests.values)) == (
        3,
        "tool_calls",
        3,
    )


def test_n86_tokens_are_those_of_the_whole_conversation(run: Run, service: Inference) -> None:
    def told(prompt: list[int], written: list[int], **answer: Any) -> dict[str, Any]:
        content: list[Any] = [
            {"token": f"token_id:{t}", "logprob": -float(t), "bytes": None, "top_logprobs": []}
            for t in written
        ]
        answer |= {"choice": {"logprobs": {"content": content}}, "prompt_token_ids": prompt}
        return chat(**answer)

    service.answers.append(told([1, 2], [3], calls=[("add", '{"a": 1}')]))
    service.answers.append(told([1, 2, 3, 4], [5, 6], content="x"))
    assert worker_of(run, service, max_length=5).step({"prompt": "?"}) == "success"
    trajectory = run.pool.put.values[0][2]
    assert trajectory["tokens"] == [1, 2, 3, 4, 5]  # and truncated
    assert trajectory["loss_mask"] == [0, 0, 1, 0, 1]
    assert trajectory["logprobs"] == [0.0, 0.0, -3.0, 0.0, -5.0]
    assert (trajectory["reward"], trajectory["truncated"]) == (0.0, True)


def test_n86_a_task_without_a_beginning_is_none(run: Run, service: Inference) -> None:
    assert worker_of(run, service).step({"answer": 1}) is None
    assert not service.requests.values


def test_tools_that_are_none(run: Run, service: Inference) -> None:
    with pytest.raises(ConfigError, match=r'rollout_worker\.tools: "add" names no class'):
        worker_of(run, service, tools=["add"])
    assert "tools" not in json.dumps(worker_of(run, service, tools=[]).tool_schemas())


def search(query: str, /, *words: str, limit: int = 3, **more: str) -> str:
    """Search."""
    return f"{query} {words} {limit} {more}"


def test_schemas_have_what_a_model_can_give_by_name(run: Run, service: Inference) -> None:
    (schema,) = worker_of(run, service, tools=[f"{__name__}:search"]).tool_schemas()
    parameters = schema["function"]["parameters"]
    assert parameters == {"type": "object", "properties": {"limit": {"type": "integer"}}, "required": []}


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("so 3 and 4", 4),
        (r"\boxed{1,234} of 7", 1234),
        ("x\n#### -5", -5),
        ("1/2", 0.5),
        ("0.50", 0.5),
        ("none", None),
        ("1/0", None),
    ],
)
def test_numbers_in_texts(text: str, want: float | None) -> None:
    assert number_in(text) == want


def test_a_math_worker_compares_numbers(run: Run, service: Inference) -> None:
    worker = worker_of(run, service, SingleTurnMathRolloutWorker)
    assert worker.step({"prompt": "24 =x", "answer": "42"}) == "success"  # the service reverses
    assert worker.step({"prompt": "24 =x", "ground_truth": 43}) == "success"
    assert worker.step({"prompt": "24 =x"}) is None
    assert [trajectory["reward"] for _, _, trajectory in run.pool.put.values] == [1.0, 0.0]
