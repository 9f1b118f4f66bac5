"""The programs of examples/nexrl: gradients, the OpenAI protocol by the openai package, learning."""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "nexrl"
sys.path.insert(0, str(EXAMPLE))

import agent  # noqa: E402
import calculator  # noqa: E402
import gang  # noqa: E402
import inference  # noqa: E402
import policy  # noqa: E402
import reverse  # noqa: E402
import rollout  # noqa: E402
import single  # noqa: E402
import train_service  # noqa: E402

from fray.rl.algorithms.processing import grpo  # noqa: E402
from fray.rl.nexrl_types import Batch  # noqa: E402
from fray.rl.train.service import pack_arrays  # noqa: E402
from fray.rl.wire import pack_batch  # noqa: E402
from ports import listen  # noqa: E402

openai = pytest.importorskip("openai")


@pytest.fixture
def served() -> Iterator[Any]:
    made: Any = inference.Policy(policy.Weights.initial(0))
    server = inference.serve_http(made)
    made.url = f"http://127.0.0.1:{server.server_port}"
    yield made
    server.shutdown()
    server.server_close()


@pytest.fixture
def client(served: Any) -> Iterator[Any]:
    with openai.OpenAI(base_url=f"{served.url}/v1", api_key="none", max_retries=0) as made:
        yield made


def batch_of(seed: int, prompts: int = 4) -> dict[str, Any]:
    batch = single.rollout(single.of(policy.Weights.initial(seed)), reverse.split()[0][:prompts], seed)
    del batch["rewards"]
    return batch


def test_gradients_are_those_of_finite_differences() -> None:
    batch = batch_of(1)
    batch["prompts"][0, 2] = policy.PAD  # a shorter prompt
    batch["old_log_probs"] = batch["old_log_probs"] - 0.3 * np.random.default_rng(2).standard_normal(
        batch["old_log_probs"].shape
    )  # so that some ratios are clipped
    weights = policy.Weights.initial(5)
    total = batch["mask"].sum()
    _, gradient = policy.loss_and_gradient(weights, **batch, total=total)
    step = 1e-6
    for name, array in weights.arrays().items():
        for place in np.ndindex(array.shape):
            kept = array[place]
            losses = []
            for sign in (1, -1):
                array[place] = kept + sign * step
                losses.append(policy.loss_and_gradient(weights, **batch, total=total)[0])
            array[place] = kept
            expected = (losses[0] - losses[1]) / (2 * step)
            assert getattr(gradient, name)[place] == pytest.approx(expected, abs=1e-7), (name, place)


def test_answers_have_the_probabilities_of_the_policy() -> None:
    weights, prompt = policy.Weights.initial(1), policy.encode("407")
    drawn = [policy.answer(weights, prompt, 1.0, seed)[0][0] for seed in range(4_000)]
    expected = np.exp(policy.log_softmax(policy.logits(weights, prompt[None])[0][0, 0]))
    assert np.abs(np.bincount(drawn, minlength=policy.VOCABULARY) / len(drawn) - expected).max() < 0.03
    tokens, log_probs = policy.answer(weights, prompt, 1.0, 3)
    answers = np.array([tokens + [policy.PAD] * (policy.ANSWER_LENGTH - len(tokens))])
    known = policy.log_probabilities(weights, prompt[None], answers)
    np.testing.assert_allclose(known[0, : len(tokens)], log_probs)
    assert policy.answer(weights, prompt, 1.0, 3) == (tokens, log_probs)


def test_one_process_learns_to_reverse(capsys: pytest.CaptureFixture[str]) -> None:
    assert single.main(25) > 0.95
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("step 0  val/exact_match 0.0")


def test_an_inference_server_answers_as_the_process_itself(capsys: pytest.CaptureFixture[str]) -> None:
    """The same learning, up to the noise of other seeds."""
    found = []
    for other_process in (False, True):
        single.main(2, other_process)
        found.append(capsys.readouterr().out.splitlines()[:-1])
    rewards = [lines[1].split()[-1] for lines in found]
    assert 0 < float(rewards[0]) < 1
    assert abs(float(rewards[0]) - float(rewards[1])) < 0.1


def test_the_prompts_are_those_that_the_program_writes(tmp_path: Path) -> None:
    reverse.write(tmp_path)
    calculator.write(tmp_path)
    for name in ("train.jsonl", "validate.jsonl", "sums.jsonl", "sums_validate.jsonl"):
        assert (EXAMPLE / name).read_text() == (tmp_path / name).read_text()
    train, validation = (
        {json.loads(line)["prompt"] for line in (EXAMPLE / f"{name}.jsonl").read_text().splitlines()}
        for name in ("train", "validate")
    )
    assert (len(train), len(validation), train & validation) == (800, 200, set())


def test_scores() -> None:
    assert reverse.scores("123", "321") == {"reward": 1.0, "exact_match": 1.0}
    assert reverse.scores("123", "322") == {"reward": pytest.approx(2 / 3), "exact_match": 0.0}
    assert reverse.scores("123", "3210") == {"reward": 0.5, "exact_match": 0.0}
    assert reverse.scores("123", "") == {"reward": 0.0, "exact_match": 0.0}


def test_completions_by_the_openai_package(client: Any) -> None:
    def ask(**more: Any) -> Any:
        return client.completions.create(model="reverse", prompt="407", **more)

    greedy = ask(temperature=0, logprobs=1, extra_body={"return_token_ids": True})
    choice = greedy.choices[0]
    assert choice.finish_reason in ("stop", "length")
    assert len(choice.logprobs.tokens) == len(choice.logprobs.token_logprobs) == len(choice.token_ids)
    assert choice.prompt_token_ids == [4, 0, 7]
    assert all(value <= 0 for value in choice.logprobs.token_logprobs)
    assert greedy.usage.total_tokens == 3 + len(choice.token_ids)
    seeded = [ask(temperature=1, seed=seed).choices[0].text for seed in range(12)]
    assert seeded == [ask(temperature=1, seed=seed).choices[0].text for seed in range(12)]
    assert len(set(seeded)) > 5
    several = ask(temperature=1, seed=1, n=8, max_tokens=1)
    assert [each.index for each in several.choices] == list(range(8))
    assert len({each.text for each in several.choices}) > 1
    assert all(each.finish_reason == "length" for each in several.choices if each.text)


def test_streams_by_the_openai_package(client: Any) -> None:
    whole = client.completions.create(model="reverse", prompt="407", temperature=0)
    parts = list(client.completions.create(model="reverse", prompt="407", temperature=0, stream=True))
    assert "".join(part.choices[0].text for part in parts) == whole.choices[0].text
    assert [part.choices[0].finish_reason for part in parts][-1] == whole.choices[0].finish_reason
    messages = [{"role": "user", "content": "407"}]
    chat = client.chat.completions.create(model="reverse", messages=messages, temperature=0, logprobs=True)
    assert chat.choices[0].message.content == whole.choices[0].text
    assert len(chat.choices[0].logprobs.content) >= len(whole.choices[0].text)
    streamed = client.chat.completions.create(model="reverse", messages=messages, temperature=0, stream=True)
    assert "".join(part.choices[0].delta.content or "" for part in streamed) == whole.choices[0].text
    assert [model.id for model in client.models.list()] == ["reverse"]


@pytest.mark.parametrize(
    ("request_of", "message"),
    [
        ({"prompt": "4o7"}, "prompt"),
        ({"prompt": "4071"}, "1 to 3 digits"),
        ({"prompt": "407", "model": "other"}, "want 'reverse'"),
        ({"prompt": "407", "temperature": -1}, "temperature"),
    ],
)
def test_bad_requests_are_rejected(client: Any, request_of: dict[str, Any], message: str) -> None:
    with pytest.raises(openai.BadRequestError, match=message):
        client.completions.create(**{"model": "reverse", **request_of})
    with pytest.raises(openai.NotFoundError):
        client.embeddings.create(model="reverse", input="x")


def test_weights_are_updated_by_http(client: Any, served: Any, tmp_path: Path) -> None:
    import urllib.request

    weights = policy.Weights.zeros()
    weights.attention[range(3), [2, 1, 0]] = 50
    weights.table[:10, :10] = 50 * np.eye(10)
    weights.bias[3, policy.END] = 100
    (tmp_path / "weights.npz").write_bytes(pack_arrays({**weights.arrays(), "version": 7}))
    body = json.dumps({"path": str(tmp_path), "version": 7}).encode()
    with urllib.request.urlopen(urllib.request.Request(f"{served.url}/update_weights", body)) as answer:
        assert json.load(answer) == {"version": 7}
    asked = client.completions.create(model="reverse", prompt="407", extra_body={"return_token_ids": True})
    assert (asked.choices[0].text, asked.choices[0].weights_version) == ("704", 7)
    np.savez(tmp_path / "weights.npz", attention=np.zeros((2, 2)))
    with pytest.raises(ValueError, match="another policy"):
        served.update_weights(str(tmp_path), 8)
    assert served.get_version() == 7


def training_batch(seed: int) -> Batch:
    values = batch_of(seed)
    names = dict(
        zip(("prompts", "answers", "mask", "advantages", "old_log_probs"), train_service.COLUMNS, strict=True)
    )
    return Batch({names[name]: value for name, value in values.items()}, {"batch_size": len(values["mask"])})


def test_the_train_service_does_what_the_single_process_does(tmp_path: Path) -> None:
    service = train_service.ReverseTrainService()
    service.initialize({"seed": 0})
    weights, optimizer = policy.Weights.initial(0), policy.Adam(train_service.RATE)
    for seed in range(3):
        batch = batch_of(seed)
        _, gradient = policy.loss_and_gradient(weights, **batch, total=batch["mask"].sum())
        optimizer.update(weights, gradient)
        service.train_batch(pack_batch(training_batch(seed)))
        if seed == 1:
            service.save_checkpoint(str(tmp_path))
    for name, array in weights.arrays().items():
        np.testing.assert_array_equal(service.weights()[name], array)
    restored = train_service.ReverseTrainService()
    restored.initialize({"seed": 9})
    assert restored.load_checkpoint(str(tmp_path)) == 2
    restored.train_batch(pack_batch(training_batch(2)))
    for name, array in service.state().items():
        np.testing.assert_array_equal(restored.state()[name], array)


def test_a_gang_makes_the_update_of_one_process() -> None:
    server = listen()
    address = f"127.0.0.1:{server.getsockname()[1]}"
    environ = {"JAX_NUM_PROCESSES": "3", "JAX_COORDINATOR_ADDRESS": address}
    followers = [
        threading.Thread(
            target=lambda rank=rank: gang.Gang({**environ, "JAX_PROCESS_ID": str(rank)}).follow(
                train_service.gradient_of_part
            ),
            daemon=True,
        )
        for rank in (1, 2)
    ]
    for follower in followers:
        follower.start()
    leader = gang.Gang({**environ, "JAX_PROCESS_ID": "0"}, server)
    many, one = train_service.ReverseTrainService(gang=leader), train_service.ReverseTrainService()
    for service in (many, one):
        service.initialize({"seed": 0})
    for seed in range(3):
        answers = [service.train_batch(pack_batch(training_batch(seed))) for service in (many, one)]
        assert answers[0]["metrics"] == pytest.approx(answers[1]["metrics"])
    for name, array in one.weights().items():
        np.testing.assert_allclose(many.weights()[name], array, rtol=1e-9, atol=1e-12)
    leader.close()
    for follower in followers:
        follower.join(60)
        assert not follower.is_alive()


class GangLostError(Exception):
    """In place of the end of the process."""


def lost(reason: str) -> NoReturn:
    raise GangLostError(reason)


def test_a_leader_ends_when_a_process_of_its_gang_is_gone() -> None:
    """Else its caller would take the error for one of the batch, and the run would end."""
    server = listen()
    address = server.getsockname()
    environ = {"JAX_NUM_PROCESSES": "2", "JAX_COORDINATOR_ADDRESS": f"127.0.0.1:{address[1]}"}

    def follower() -> None:
        with socket.create_connection(address) as stranger:
            stranger.sendall(b"GET / ")  # it is none of the gang
        with socket.create_connection(address) as one:
            one.sendall((1).to_bytes(4, "big"))
            one.recv(1)  # it takes a part, and is killed

    thread = threading.Thread(target=follower, daemon=True)
    thread.start()
    leader = gang.Gang({**environ, "JAX_PROCESS_ID": "0"}, server, lost)
    service = train_service.ReverseTrainService(gang=leader)
    service.initialize({"seed": 0})
    with pytest.raises(GangLostError, match="a process of the gang is gone"):
        service.train_batch(pack_batch(training_batch(0)))
    thread.join(60)
    leader.close()


class Sink:
    """A trajectory pool in this process."""

    def __init__(self) -> None:
        self.trajectories: list[dict[str, Any]] = []

    def put_trajectory(self, trajectory: dict[str, Any]) -> str:
        self.trajectories.append(trajectory)
        return "success"


def worker_at(kind: Any, served: Any, model: str) -> tuple[Any, Sink]:
    service = {"url": served.url, "model": model, "max_retries": 0}
    worker = kind({"inference_service": service, "seed": 0})
    sink = Sink()
    worker.set_module_references(sink, None, None)
    return worker, sink


@pytest.fixture
def calculating() -> Iterator[Any]:
    made: Any = agent.CalculatorService({"out": "/nonexistent"})
    made.url = f"http://127.0.0.1:{made.http.server_port}"
    yield made
    made.http.shutdown()
    made.http.server_close()


def weights_of(folder: Path, **chosen: int) -> str:
    """Return the path of weights that have the agent choose an action wherever it sees something."""
    table = np.zeros((len(agent.WORDS), len(agent.ACTIONS)))
    for word, action in chosen.items():
        table[agent.WORDS.index(word.replace("_", " ")), action] = 50
    (folder / "weights.npz").write_bytes(pack_arrays({"table": table, "version": 1}))
    return str(folder)


def test_n86_an_agent_uses_the_calculator_over_several_turns(calculating: Any, tmp_path: Path) -> None:
    right = {
        "in_order": agent.FIRST,
        "second_first": agent.SECOND,
        "one_left": agent.FIRST,
        "done": agent.ANSWER,
    }
    calculating.update_weights(weights_of(tmp_path, **right), 1)
    worker, sink = worker_at(rollout.CalculatorRolloutWorker, calculating, "calculator")
    task = {"prompt": "12 - 3 * 7", "answer": -9, "group_id": "0/0", "run_id": 0}
    assert worker.step(task) == "success"
    (trajectory,) = sink.trajectories
    assert (trajectory["response"], trajectory["reward"]) == ("-9", 1.0)
    assert (trajectory["turns"], trajectory["tool_calls"]) == (3, 2)
    assert [message["content"] for message in trajectory["messages"] if message["role"] == "tool"] == [
        "21",
        "-9",
    ]
    assert [agent.WORDS[token] for token in trajectory["tokens"]] == [
        "second first", "second", "one left", "first", "done", "answer"
    ]  # fmt: skip
    assert trajectory["loss_mask"] == [0, 1] * 3
    calculating.update_weights(weights_of(tmp_path, **{**right, "in_order": agent.SECOND}), 2)
    assert worker.step({**task, "prompt": "12 - 3 + 7", "answer": 16}) == "success"
    assert (sink.trajectories[1]["response"], sink.trajectories[1]["reward"]) == ("2", 0.0)
    calculating.update_weights(weights_of(tmp_path, second_first=agent.SECOND, one_left=agent.SECOND), 3)
    assert worker.step(task) == "success"
    assert sink.trajectories[2]["response"] == "There is no such operation."


def test_n86_the_agent_learns(calculating: Any, tmp_path: Path) -> None:
    """The agent's example in little: rollouts over HTTP, advantages of GRPO, updates of its trainer."""
    service = agent.CalculatorTrainService()
    service.initialize({})
    worker, sink = worker_at(rollout.CalculatorRolloutWorker, calculating, "calculator")
    train, validation = calculator.split()

    def rolled_out(expressions: list[str], repeat: int, name: str) -> list[dict[str, Any]]:
        sink.trajectories.clear()
        for text in expressions:
            answer = calculator.Expression.parse(text).value()
            for run in range(repeat):
                worker._llm_client.begin_task(f"{name}/{text}/{run}")
                assert (
                    worker.step({"prompt": text, "answer": answer, "group_id": text, "run_id": run})
                    == "success"
                )
        return list(sink.trajectories)

    def share(step: int) -> float:
        worker._validating.set()
        rewards = [
            trajectory["reward"] for trajectory in rolled_out(validation[:20], 1, f"validation {step}")
        ]
        worker._validating.clear()
        return float(np.mean(rewards))

    assert share(0) < 0.5
    for step in range(12):
        batch = Batch.from_trajectories(rolled_out(train[step * 8 : step * 8 + 8], 8, str(step)))
        trainable, metrics = grpo(batch)
        assert metrics["critic/score/mean"] >= 0
        service.train_batch(pack_batch(trainable))
        service.save_weights(str(tmp_path))
        calculating.update_weights(str(tmp_path), step + 1)
    assert share(12) == 1.0


def test_expressions() -> None:
    for text, value in {"2 + 3 * 4": 14, "2 * 3 + 4": 10, "9 - 3 - 2": 4, "7": 7}.items():
        assert calculator.Expression.parse(text).value() == value
    for text in ("", "1 +", "1 / 2", "__import__('os')"):
        with pytest.raises(ValueError, match=r"want integers|invalid literal"):
            calculator.Expression.parse(text)
    with pytest.raises(ValueError, match="operator"):
        calculator.calculate(1, "/", 2)
    with pytest.raises(ValueError, match="at most"):
        calculator.calculate(10**13, "*", 2)


def test_bad_conversations_are_rejected(calculating: Any) -> None:
    tools = [{"type": "function", "function": {"name": "calculate"}}]
    call = {"id": "call_1_0", "type": "function", "function": {"name": "calculate", "arguments": "{}"}}
    asked = [{"role": "user", "content": "1 + 2 * 3"}]
    with openai.OpenAI(base_url=f"{calculating.url}/v1", api_key="none", max_retries=0) as client:
        for messages, given, problem in [
            (asked, [], "want the function calculate"),
            ([{"role": "user", "content": "hello"}], tools, "invalid literal"),
            ([{"role": "system", "content": "1 + 2"}], tools, "none of a user"),
            (
                [*asked, {"role": "assistant", "content": None, "tool_calls": [call]}],
                tools,
                "no result for call_1_0",
            ),
        ]:
            with pytest.raises(openai.BadRequestError, match=problem):
                client.chat.completions.create(model="calculator", messages=messages, tools=given)
        with pytest.raises(openai.BadRequestError, match="conversations only"):
            client.completions.create(model="calculator", prompt="1 + 2")


def test_a_rollout_has_what_training_needs(served: Any) -> None:
    worker, sink = worker_at(rollout.ReverseRolloutWorker, served, "reverse")
    assert worker.step({"prompt": "407", "group_id": "0/3", "run_id": 2, "index": 3}) == "success"
    assert worker.step({"group_id": "0/3"}) is None
    (trajectory,) = sink.trajectories
    assert trajectory["prompts"] == [4, 0, 7]
    assert len(trajectory["responses"]) == len(trajectory["log_probs"]) >= 1
    assert trajectory["group_id"] == "0/3"
    assert trajectory["reward"] == reverse.scores("407", trajectory["response"])["reward"]
