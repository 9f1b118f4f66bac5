"""The client of an inference service that speaks OpenAI's protocol, as vLLM, SGLang and others do.

Calls wait while the weights of their model change, and are seeded by the task and the version of the
weights, so that a run with fixed seeds is the same each time. The package `openai` is imported when the first
client is made.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import threading
import time
from collections.abc import Callable
from typing import Any

from fray.rl.combined import Combined
from fray.rl.config import ConfigError, class_of, setting
from fray.rl.nexrl_types import DEFAULT_MODEL
from fray.rl.references import RolloutService, rollout_service_of, weight_sync_controller_of

_log = logging.getLogger("fray.rl")

SYNC_TIMEOUT = 60.0
"""Seconds that a call waits for weights to be synced."""

BACKENDS = ("openai", "vllm", "sglang", "mock")
"""Services that are known. All but "mock", which answers by itself, speak OpenAI's protocol."""

MAX_RETRIES = 3
_TIMEOUT = 600.0  # seconds for one request
_CONNECT = 10.0  # of these at most for its connection
_POLL = 5.0  # seconds of one question whether weights are synced
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 8.0  # seconds between two tries
_LONGEST_ASKED = 60.0  # seconds that a service may ask for
_RETRIED = (408, 409, 425, 429)  # status of responses after which the same request may succeed


class WeightSyncTimeoutError(TimeoutError):
    """The weights of a model were not synced in time."""


class StoppedError(RuntimeError):
    """The module was told to stop while a call waited."""


class LLMServiceError(RuntimeError):
    """The inference service gave no usable answer, also after all retries; the cause is the last error."""


class LLMServiceAwayError(LLMServiceError):
    """The inference service cannot be reached, also after all retries, as while it is started again."""


class LLMServiceClient:
    """Asks an inference service for completions.

    Keys of `inference_service`: `url` (with or without /v1), `api_key`, `model` (the model's tag if it is
    missing), `model_tag` ("default"), `max_retries` (3), `max_tokens`, `temperature`, `timeout` (600 s for
    a request, 10 of them for its connection), `freeze_for_weight_sync` (true) and `sync_timeout` (60 s).

    A request is made again where the service gave no answer, or one that says so: it may have been completed
    then, and is completed twice, which changes nothing but time. A request that the service rejects is not.
    """

    def __init__(self, config: Any) -> None:
        """Make a client of the service that `config.inference_service` describes.

        Raises:
            ImportError: the package openai is not installed: `pip install 'fray-ml[rl]'`.
            ConfigError: there is no URL, or another key has a wrong value.
        """
        service = setting(config, "inference_service", config)
        self._model_tag: str = setting(service, "model_tag", DEFAULT_MODEL)
        self._model: str = setting(service, "model", self._model_tag)
        self._max_retries = int(setting(service, "max_retries", MAX_RETRIES))
        if self._max_retries < 0:
            raise ConfigError(f"service.inference_service.max_retries is {self._max_retries}; want 0 or more")
        self._freeze_for_weight_sync = bool(setting(service, "freeze_for_weight_sync", True))
        self._defaults = {
            name: value
            for name in ("max_tokens", "temperature")
            if (value := setting(config, name, setting(service, name))) is not None
        }
        self._seed = setting(config, "seed")
        self._sync_timeout = float(setting(service, "sync_timeout", SYNC_TIMEOUT))
        self._client = self._connect(service)
        self._weight_sync_controller: Any = None
        self._stopped = threading.Event()
        self._task = threading.local()
        self._services: Combined[float, RolloutService] = Combined(self._ask_controller)

    def _connect(self, service: Any) -> Any:
        """Return what makes the requests."""
        url = setting(service, "url") or setting(service, "base_url")
        if not url:
            raise ConfigError('service.inference_service.url is missing; write it as "http://HOST:PORT"')
        key, timeout = setting(service, "api_key") or "none", float(setting(service, "timeout", _TIMEOUT))
        if timeout <= 0:
            raise ConfigError(f"service.inference_service.timeout is {timeout:g}; want seconds, above 0")
        return _openai(_with_version(url), key, timeout)

    def set_weight_sync_controller(self, controller: Any) -> None:
        """Set what is asked whether the model's weights change."""
        self._weight_sync_controller = weight_sync_controller_of(controller)

    def begin_task(self, task_id: str) -> None:
        """Seed the next calls of this thread by a task; each of them is a turn of it."""
        self._task.id, self._task.turn, self._task.version = task_id, 0, None

    @property
    def version(self) -> int | None:
        """The version of the weights that the first call of this thread's task had; None: not known."""
        found: int | None = getattr(self._task, "version", None)
        return found

    def begin(self) -> None:
        """Allow calls, as at first and after `stop`."""
        self._stopped.clear()

    def stop(self) -> None:
        """Have calls end that wait for weights or for the next try, and all later ones."""
        self._stopped.set()

    def completion(self, prompt: str, **kwargs: Any) -> dict[str, Any]:
        """Complete a text.

        Args:
            prompt: The text.
            **kwargs: Parameters of OpenAI's completions, such as `max_tokens`, `temperature`, `logprobs` or
                `extra_body`; they precede those of the configuration.

        Returns:
            `prompt`, `response`, `finish_reason` and the kwargs. Where the service states them also
            `response_tokens` and `response_logprobs`, and with the prompt's tokens `tokens` (of prompt and
            response), `prompt_num_tokens` and `loss_mask` (1 for tokens of the response).

        Raises:
            LLMServiceError: no answer after all retries, or the service rejects the request; an
                LLMServiceAwayError if it cannot be reached.
            WeightSyncTimeoutError: the weights were not synced within 60 s.
            StoppedError: the client was stopped meanwhile.
        """
        answer = self._ask(self._client.completions.create, {"prompt": prompt}, kwargs)
        choice = answer.choices[0]
        if choice.text is None:
            raise LLMServiceError(f"{self._model} answered a completion without text")
        tokens = _tokens_of(answer, choice, getattr(choice.logprobs, "tokens", None))
        logprobs = getattr(choice.logprobs, "token_logprobs", None)
        found = _described(choice.text, choice.finish_reason, tokens, logprobs)
        return {**kwargs, "prompt": prompt, **found}

    def generate(self, messages: list[dict[str, Any]], **kwargs: Any) -> dict[str, Any]:
        """Continue a conversation.

        Args:
            messages: The conversation so far, as OpenAI's chat completions take it.
            **kwargs: Parameters of OpenAI's chat completions, such as `tools`.

        Returns:
            `messages`, `response` ("" if there are only tool calls), `tool_calls`, `finish_reason` and the
            kwargs; tokens as `completion` has them. `tool_calls` is a list of dictionaries as in messages of
            an assistant, None if there are none.

        Raises:
            LLMServiceError, WeightSyncTimeoutError, StoppedError: as in `completion`.
        """
        answer = self._ask(self._client.chat.completions.create, {"messages": messages}, kwargs)
        choice = answer.choices[0]
        message = choice.message
        calls = [call.model_dump(exclude_none=True) for call in message.tool_calls or ()] or None
        if message.content is None and calls is None:
            raise LLMServiceError(f"{self._model} answered with neither text nor tool calls")
        content = getattr(choice.logprobs, "content", None)
        tokens = _tokens_of(answer, choice, None if content is None else [each.token for each in content])
        logprobs = None if content is None else [each.logprob for each in content]
        found = _described(message.content or "", choice.finish_reason, tokens, logprobs)
        return {**kwargs, "messages": messages, "tool_calls": calls, **found}

    def _ask(self, create: Callable[..., Any], what: dict[str, Any], kwargs: dict[str, Any]) -> Any:
        if kwargs.get("stream"):
            raise ValueError("stream=True: answers come whole here; leave it out")
        request = {"model": self._model, **self._defaults, **kwargs, **what}
        turn = self._next_turn()
        for attempt in range(self._max_retries + 1):
            version = self._wait_for_weights()  # which may have begun to change since the try before
            if self._stopped.is_set():
                raise StoppedError("the client was stopped")
            seed = self._seed_of(version, turn)
            try:
                answer = create(**({} if seed is None else {"seed": seed}) | request)
            except Exception as err:
                if attempt == self._max_retries or not _may_succeed(err):
                    raise self._failed(err, attempt + 1) from err
                _log.warning("try %d of %d at %s: %s", attempt + 1, self._max_retries + 1, self._model, err)
                self._stopped.wait(_pause(err, attempt))
                continue
            if not getattr(answer, "choices", None):
                raise LLMServiceError(f"{self._model} answered without choices")
            if getattr(self._task, "version", None) is None:
                self._task.version = version
            return answer
        raise AssertionError("unreachable")

    def _failed(self, err: Exception, tries: int) -> LLMServiceError:
        """Return that there is no answer after so many tries, of which the last one failed by an error."""
        counted = "1 try" if tries == 1 else f"{tries} tries"
        kind = LLMServiceAwayError if _is_away(err) else LLMServiceError
        return kind(f"no answer of {self._model} after {counted}: {err}")

    def _wait_for_weights(self) -> int | None:
        """Return once the weights are those that rollouts are to have: with their version, if it is known."""
        if self._weight_sync_controller is None:
            return None
        if not self._freeze_for_weight_sync:
            return int(self._weight_sync_controller.get_rollout_model_version(self._model_tag))
        until = time.monotonic() + self._sync_timeout
        while True:
            left = max(0.0, until - time.monotonic())
            service = self._services.ask(left)
            if service.status == "continue":
                return service.version
            if self._stopped.is_set():
                raise StoppedError("the client was stopped while weights were being synced")
            if time.monotonic() >= until:
                raise WeightSyncTimeoutError(
                    f'weights of model "{self._model_tag}" were not synced within {self._sync_timeout:g} s; '
                    "the weight_sync_controller's status has why"
                )

    def _ask_controller(self, seconds: list[float]) -> list[RolloutService]:
        """Ask once for all threads that ask now."""
        wait = 0.0 if self._stopped.is_set() else min(*seconds, _POLL)
        return [rollout_service_of(self._weight_sync_controller, self._model_tag, wait)] * len(seconds)

    def _next_turn(self) -> int:
        turn: int = getattr(self._task, "turn", 0)
        self._task.turn = turn + 1
        return turn

    def _seed_of(self, version: int | None, turn: int) -> int | None:
        task_id = getattr(self._task, "id", "")
        if self._seed is None or not task_id:
            return None
        return sampling_seed(int(self._seed), task_id, version or 0, turn)


def client_of(config: Any) -> LLMServiceClient:
    """Return the client that `config.inference_service.backend` asks for.

    It is one of `BACKENDS`, or "module:Class" for a class that is made with the configuration.

    Raises:
        ConfigError: it is another backend.
    """
    key = "service.inference_service.backend"
    backend = str(setting(config, "inference_service.backend", "openai"))
    if backend == "mock":
        from fray.rl.mock import MockLLMServiceClient

        return MockLLMServiceClient(config)
    if ":" in backend:
        client: LLMServiceClient = class_of(backend, key)(config)
        return client
    if backend not in BACKENDS:
        known = ", ".join(f'"{each}"' for each in BACKENDS)
        raise ConfigError(f'{key}: want one of {known}, or "module:Class" of a client, got "{backend}"')
    return LLMServiceClient(config)


def sampling_seed(seed: int, task_id: str, version: int, turn: int) -> int:
    """Return the seed of one completion, 0 to 2^31 - 1: the same in every run of the same seed."""
    text = f"{seed}\x00{task_id}\x00{version}\x00{turn}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little") >> 1


def _openai(url: str, key: str, timeout: float) -> Any:
    try:
        import openai
    except ImportError as err:
        raise ImportError("rollout workers need the package openai: pip install 'fray-ml[rl]'") from err
    limits = openai.Timeout(timeout, connect=min(timeout, _CONNECT))
    return openai.OpenAI(base_url=url, api_key=key, timeout=limits, max_retries=0)


def _with_version(url: str) -> str:
    given, url = url, url.rstrip("/")
    if "://" not in url:
        url = f"http://{url}"
    if not url.startswith(("http://", "https://")):
        raise ConfigError(f'service.inference_service.url is "{given}"; write it as "http://HOST:PORT"')
    return url if url.endswith("/v1") else f"{url}/v1"


def _may_succeed(err: Exception) -> bool:
    """Return whether the same request may succeed later."""
    import openai

    if isinstance(err, openai.APIStatusError):
        return err.status_code >= 500 or err.status_code in _RETRIED
    # No connection, no time, or no answer of the protocol, as one that was cut off.
    return isinstance(err, (openai.APIError, json.JSONDecodeError))


def _is_away(err: Exception) -> bool:
    """Return whether there is no service to answer; one that takes too long is there."""
    import openai

    if isinstance(err, openai.APIStatusError):
        return err.status_code in (502, 503, 504)  # of a proxy before it
    return isinstance(err, openai.APIConnectionError) and not isinstance(err, openai.APITimeoutError)


def _pause(err: Exception, attempt: int) -> float:
    """Return how many seconds to wait before the next try: as the service asks, else ever longer."""
    response = getattr(err, "response", None)
    asked = response.headers.get("retry-after", "") if response is not None else ""
    try:
        seconds = float(asked)
    except ValueError:
        seconds = math.nan
    if math.isfinite(seconds) and seconds >= 0:
        return min(seconds, _LONGEST_ASKED)
    return float(min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**attempt))


class _Tokens:
    """The tokens of an answer as far as the service states them."""

    def __init__(self, prompt: list[int] | None, response: list[int] | None) -> None:
        self.prompt, self.response = prompt, response


def _tokens_of(answer: Any, choice: Any, texts: list[str] | None) -> _Tokens:
    """Return the ids of tokens.

    vLLM has `token_ids` and `prompt_token_ids` with `return_token_ids`, and writes tokens as "token_id:17"
    with `return_tokens_as_token_ids`.
    """
    prompt = getattr(choice, "prompt_token_ids", None) or getattr(answer, "prompt_token_ids", None)
    response = getattr(choice, "token_ids", None)
    if response is None and texts and all(text.startswith("token_id:") for text in texts):
        response = [int(text.removeprefix("token_id:")) for text in texts]
    return _Tokens(None if prompt is None else list(prompt), None if response is None else list(response))


def _described(
    text: str, reason: str | None, tokens: _Tokens, logprobs: list[float] | None
) -> dict[str, Any]:
    found: dict[str, Any] = {"response": text, "finish_reason": reason}
    if logprobs is not None:
        found["response_logprobs"] = list(logprobs)
    if tokens.response is not None:
        found["response_tokens"] = tokens.response
        if tokens.prompt is not None:
            found["tokens"] = [*tokens.prompt, *tokens.response]
            found["prompt_num_tokens"] = len(tokens.prompt)
            found["loss_mask"] = [0] * len(tokens.prompt) + [1] * len(tokens.response)
    return found
