"""The client of inference services: the real package openai against a server. N44, N45 and seeds."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from fray.rl import LLMServiceClient
from fray.rl.config import Config, ConfigError
from fray.rl.llm import (
    LLMServiceAwayError,
    LLMServiceError,
    StoppedError,
    WeightSyncTimeoutError,
    client_of,
    sampling_seed,
)
from fray.rl.mock import MockLLMServiceClient
from rl_run import Inference, Weights, chat, inference, text


@pytest.fixture
def service() -> Iterator[Inference]:
    with inference() as one:
        yield one


def client_at(service: Inference, **options: Any) -> LLMServiceClient:
    settings = {"url": service.url, "model_tag": "policy", **options}
    return LLMServiceClient(Config({"inference_service": settings, "seed": 1}))


class Pauses(threading.Event):
    """Waits no time, and notes how long it should have."""

    def __init__(self) -> None:
        super().__init__()
        self.noted: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.noted.append(timeout)
        return self.is_set()


def hasty(client: LLMServiceClient) -> Pauses:
    """Let pauses between tries take no time."""
    client._stopped = pauses = Pauses()
    return pauses


def test_a_completion_has_prompt_response_reason_and_what_was_passed(service: Inference) -> None:
    got = client_at(service, model="m", temperature=0.5).completion("abc", max_tokens=7)
    assert got == {"prompt": "abc", "response": "cba", "finish_reason": "stop", "max_tokens": 7}
    ((path, request),) = service.requests.values
    assert path == "/v1/completions"
    assert request == {"model": "m", "prompt": "abc", "temperature": 0.5, "max_tokens": 7}


def test_tokens_are_those_that_the_service_states(service: Inference) -> None:
    logprobs = {"tokens": ["token_id:5", "token_id:6"], "token_logprobs": [-0.5, -1.0]}
    service.answers.append(text("x", logprobs=logprobs, prompt_token_ids=[1, 2]))
    got = client_at(service).completion("abc")
    assert (got["tokens"], got["loss_mask"], got["prompt_num_tokens"]) == ([1, 2, 5, 6], [0, 0, 1, 1], 2)
    assert (got["response_tokens"], got["response_logprobs"]) == ([5, 6], [-0.5, -1.0])


def test_generate_has_messages_and_tool_calls(service: Inference) -> None:
    service.answers.append(chat(calls=[("add", '{"a": 1}')]))
    messages = [{"role": "user", "content": "hi"}]
    client = client_at(service)
    got = client.generate(messages, temperature=0.1)
    assert (got["messages"], got["response"], got["finish_reason"], got["temperature"]) == (
        messages,
        "",
        "tool_calls",
        0.1,
    )
    assert got["tool_calls"] == [
        {"id": "call-0", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
    ]
    assert client.generate(messages)["tool_calls"] is None


def test_an_answer_with_neither_text_nor_calls_is_an_error(service: Inference) -> None:
    service.answers.append(chat())
    with pytest.raises(LLMServiceError, match="neither text nor tool calls"):
        client_at(service).generate([])


def test_n44_a_call_blocks_while_weights_change(service: Inference) -> None:
    weights = Weights()
    weights.block(True)
    client = client_at(service)
    client.set_weight_sync_controller(weights)
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(client.completion("ab")))
    thread.start()
    weights.asked.count(2)  # it has asked, and waits
    assert not service.requests.values
    weights.block(False)
    thread.join()
    assert answers[0]["response"] == "ba"


def test_n44_weights_that_are_not_synced_in_time_are_an_error(service: Inference) -> None:
    weights = Weights()
    weights.block(True)
    client = client_at(service, sync_timeout=0.01)
    client.set_weight_sync_controller(weights)
    with pytest.raises(WeightSyncTimeoutError, match=r'model "policy" were not synced within 0.01 s'):
        client.completion("ab")
    assert not service.requests.values
    assert LLMServiceClient(Config({"url": "x"}))._sync_timeout == 60


def test_n44_without_freezing_it_does_not_ask(service: Inference) -> None:
    weights = Weights()
    weights.block(True)
    client = client_at(service, freeze_for_weight_sync=False)
    client.set_weight_sync_controller(weights)
    assert client.completion("ab")["response"] == "ba"
    assert not weights.asked.values


@pytest.mark.parametrize("status", [500, 503, 429, 408])
def test_n45_it_retries_max_retries_times(service: Inference, status: int) -> None:
    service.answers.extend([status] * 3)
    client = client_at(service, max_retries=2)
    pauses = hasty(client)
    with pytest.raises(LLMServiceError, match=f"no answer of policy after 3 tries: .*{status}"):
        client.completion("ab")
    assert len(service.requests.values) == 3
    assert pauses.noted == [0.5, 1.0]


def test_n45_a_retry_may_succeed(service: Inference) -> None:
    service.headers["Retry-After"] = "0.25"
    service.answers.extend([500, 429])
    client = client_at(service)
    pauses = hasty(client)
    assert client.completion("ab")["response"] == "ba"
    assert pauses.noted == [0.25, 0.25]  # as the service asks


@pytest.mark.parametrize("status", [400, 401, 404, 422])
def test_n45_what_the_service_rejects_is_not_sent_again(service: Inference, status: int) -> None:
    service.answers.append(status)
    with pytest.raises(LLMServiceError, match=f"after 1 try: .*{status}"):
        client_at(service).completion("ab")
    assert len(service.requests.values) == 1


def test_n45_a_service_that_is_not_there() -> None:
    client = LLMServiceClient(Config({"url": "http://127.0.0.1:9", "max_retries": 1}))
    hasty(client)
    with pytest.raises(LLMServiceAwayError, match="after 2 tries: Connection error"):
        client.completion("ab")


def test_n44_another_try_waits_for_weights_that_began_to_change(service: Inference) -> None:
    """And it is seeded by the version that it is completed with."""
    weights = Weights()
    weights.version = 3
    service.answers.append(500)

    class Changing(Pauses):
        def wait(self, timeout: float | None = None) -> bool:
            weights.block(True)
            weights.version = 4
            return super().wait(timeout)

    client = client_at(service)
    client._stopped = Changing()
    client.set_weight_sync_controller(weights)
    versions: list[int | None] = []

    def complete() -> None:
        client.begin_task("0/1/0")
        client.completion("ab")
        versions.append(client.version)

    thread = threading.Thread(target=complete)
    thread.start()
    weights.asked.until(lambda asked: ("policy", "waits") in asked)
    assert len(service.requests.values) == 1
    weights.block(False)
    thread.join()
    seeds = [request["seed"] for _, request in service.requests.values]
    assert seeds == [sampling_seed(1, "0/1/0", version, 0) for version in (3, 4)]
    assert versions == [4]


def test_n45_a_service_that_takes_too_long_is_asked_again(service: Inference) -> None:
    """It is there, so that the task's failure is its own."""
    service.gate.clear()
    client = client_at(service, timeout=0.1, max_retries=1)
    hasty(client)
    with pytest.raises(LLMServiceError, match="after 2 tries: Request timed out") as caught:
        client.completion("ab")
    assert not isinstance(caught.value, LLMServiceAwayError)


def test_n45_an_answer_that_was_cut_off_is_asked_for_again(service: Inference) -> None:
    service.answers.append(b'{"choices": [')
    client = client_at(service)
    hasty(client)
    assert client.completion("ab")["response"] == "ba"
    assert len(service.requests.values) == 2


@pytest.mark.parametrize("body", [b"{}", b'"a page of a proxy"', b'{"choices": []}'])
def test_an_answer_without_choices_is_an_error(service: Inference, body: bytes) -> None:
    service.answers.append(body)
    with pytest.raises(LLMServiceError, match="policy answered without choices"):
        client_at(service).completion("ab")


@pytest.mark.parametrize("asked", ["-1", "nan", "inf", "Wed, 21 Oct 2026 07:28:00 GMT"])
def test_a_service_may_ask_for_no_such_pause(service: Inference, asked: str) -> None:
    service.headers["Retry-After"] = asked
    service.answers.append(503)
    client = client_at(service)
    pauses = hasty(client)
    client.completion("ab")
    assert pauses.noted == [0.5]


def test_answers_come_whole(service: Inference) -> None:
    with pytest.raises(ValueError, match="stream=True: answers come whole here"):
        client_at(service).completion("ab", stream=True)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"url": "ftp://host"}, r'url is "ftp://host"; write it as "http://HOST:PORT"'),
        ({"max_retries": -1}, "max_retries is -1; want 0 or more"),
        ({"timeout": 0}, "timeout is 0; want seconds, above 0"),
    ],
)
def test_wrong_values_are_errors(service: Inference, options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        client_at(service, **options)


class Own(LLMServiceClient):
    """A client of one's own."""


@pytest.mark.parametrize(
    ("backend", "kind"),
    [
        ("vllm", LLMServiceClient),
        ("sglang", LLMServiceClient),
        ("openai", LLMServiceClient),
        (None, LLMServiceClient),
        ("mock", MockLLMServiceClient),
        ("test_rl_llm:Own", Own),
    ],
)
def test_backends(backend: str | None, kind: type) -> None:
    client = client_of(Config({"inference_service": {"backend": backend, "url": "http://127.0.0.1:9"}}))
    assert type(client).__name__ == kind.__name__


def test_an_unknown_backend_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r'backend: want one of "openai", .*got "vlm"'):
        client_of(Config({"inference_service": {"backend": "vlm", "url": "http://127.0.0.1:9"}}))


def test_a_connection_has_a_limit_of_its_own() -> None:
    timeout = LLMServiceClient(Config({"url": "http://127.0.0.1:9"}))._client.timeout
    assert (timeout.connect, timeout.read) == (10, 600)


def test_a_client_that_is_stopped_ends_its_waits(service: Inference) -> None:
    weights = Weights()
    weights.block(True)
    client = client_at(service)
    client.set_weight_sync_controller(weights)
    client.stop()
    with pytest.raises(StoppedError, match="while weights were being synced"):
        client.completion("ab")
    weights.block(False)
    with pytest.raises(StoppedError):
        client.completion("ab")
    client.begin()
    assert client.completion("ab")["response"] == "ba"


def test_seeds_are_of_task_version_and_turn(service: Inference) -> None:
    weights = Weights()
    weights.version = 3
    client = client_at(service)
    client.set_weight_sync_controller(weights)
    for task in ("0/1/0", "0/1/1", "0/1/0"):
        client.begin_task(task)
        client.completion("ab")
        client.completion("ab")
    seeds = [request["seed"] for _, request in service.requests.values]
    assert seeds[:2] == [sampling_seed(1, "0/1/0", 3, 0), sampling_seed(1, "0/1/0", 3, 1)]
    assert seeds[4:] == seeds[:2]
    assert len(set(seeds)) == 4
    assert client.version == 3
    assert sampling_seed(1, "0/1/0", 4, 0) != seeds[0]


def test_seeds_are_the_same_on_every_machine() -> None:
    assert [sampling_seed(7, "0/12/3", 5, 0), sampling_seed(8, "0/12/3", 5, 0)] == [2108735660, 141040976]


@pytest.mark.parametrize("url", ["host:81", "http://host:81/", "http://host:81/v1", "http://host:81/v1/"])
def test_urls(url: str) -> None:
    client = LLMServiceClient(Config({"url": url}))
    assert str(client._client.base_url) == "http://host:81/v1/"


def test_a_missing_url_is_an_error() -> None:
    with pytest.raises(ConfigError, match=r"inference_service.url is missing"):
        LLMServiceClient(Config({}))
