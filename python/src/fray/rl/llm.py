"""The client of an inference service that speaks OpenAI's protocol, as vLLM, SGLang and others do.

Calls wait while the weights of their model change, and are seeded by the task and the version of the
weights, so that a run with fixed seeds is the same each time. The package `openai` is imported when the first
client is made.
"""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections.abc import Callable
from typing import Any

from fray.rl.config import ConfigError, setting
from fray.rl.nexrl_types import DEFAULT_MODEL
from fray.rl.references import weight_sync_controller_of

_log = logging.getLogger("fray.rl")

SYNC_TIMEOUT = 60.0
"""Seconds that a call waits for weights to be synced."""

MAX_RETRIES = 3
_TIMEOUT = 600.0  # seconds for one request
_POLL = 5.0  # seconds of one question whether weights are synced
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 8.0  # seconds between two tries
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
    a request) and `freeze_for_weight_sync` (true).
    """

    def __init__(self, config: Any) -> None:
        """Make a client of the service that `config.inference_service` describes.

        Raises:
            ImportError: the package openai is not installed: `pip install 'fray-ml[rl]'`.
            ConfigError: there is no URL.
        """
        service = setting(config, "inference_service", config)
        self._model_tag: str = setting(service, "model_tag", DEFAULT_MODEL)
        self._model: str = setting(service, "model", self._model_tag)
        self._max_retries = int(setting(service, "max_retries", MAX_RETRIES))
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

    def _connect(self, service: Any) -> Any:
        """Return what makes the requests."""
        url = setting(service, "url") or setting(service, "base_url")
        if not url:
            raise ConfigError('service.inference_service.url is missing; write it as "http://HOST:PORT"')
        key, timeout = setting(service, "api_key") or "none", float(setting(service, "timeout", _TIMEOUT))
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
        request = {"model": self._model, **self._defaults, **kwargs, **what}
        self._wait_for_weights()
        version = self._version_of_weights()
        if (seed := self._next_seed(version)) is not None:
            request.setdefault("seed", seed)
        for attempt in range(self._max_retries + 1):
            if self._stopped.is_set():
                raise StoppedError("the client was stopped")
            try:
                answer = create(**request)
            except Exception as err:
                if attempt == self._max_retries or not _may_succeed(err):
                    tries = "1 try" if attempt == 0 else f"{attempt + 1} tries"
                    kind = LLMServiceAwayError if _is_away(err) else LLMServiceError
                    raise kind(f"no answer of {self._model} after {tries}: {err}") from err
                _log.warning("try %d of %d at %s: %s", attempt + 1, self._max_retries + 1, self._model, err)
                self._stopped.wait(_pause(err, attempt))
                continue
            if not answer.choices:
                raise LLMServiceError(f"{self._model} answered without choices")
            return answer
        raise AssertionError("unreachable")

    def _wait_for_weights(self) -> None:
        """Return once the weights are those that rollouts are to have."""
        controller = self._weight_sync_controller
        if controller is None or not self._freeze_for_weight_sync:
            return
        until = time.monotonic() + self._sync_timeout
        while controller.check_rollout_service_status(self._model_tag) != "continue":
            while not self._stopped.is_set() and (left := until - time.monotonic()) > 0:
                if controller.wait_rollout_service(self._model_tag, min(left, _POLL)) == "continue":
                    return
            if self._stopped.is_set():
                raise StoppedError("the client was stopped while weights were being synced")
            raise WeightSyncTimeoutError(
                f'weights of model "{self._model_tag}" were not synced within {self._sync_timeout:g} s; '
                "the weight_sync_controller's status has why"
            )

    def _version_of_weights(self) -> int | None:
        if self._weight_sync_controller is None:
            return None
        version = int(self._weight_sync_controller.get_rollout_model_version(self._model_tag))
        if getattr(self._task, "version", None) is None:
            self._task.version = version
        return version

    def _next_seed(self, version: int | None) -> int | None:
        task_id = getattr(self._task, "id", "")
        if self._seed is None or not task_id:
            return None
        turn = self._task.turn
        self._task.turn = turn + 1
        return sampling_seed(int(self._seed), task_id, version or 0, turn)


def sampling_seed(seed: int, task_id: str, version: int, turn: int) -> int:
    """Return the seed of one completion, 0 to 2^31 - 1: the same in every run of the same seed."""
    text = f"{seed}\x00{task_id}\x00{version}\x00{turn}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little") >> 1


def _openai(url: str, key: str, timeout: float) -> Any:
    try:
        import openai
    except ImportError as err:
        raise ImportError("rollout workers need the package openai: pip install 'fray-ml[rl]'") from err
    return openai.OpenAI(base_url=url, api_key=key, timeout=timeout, max_retries=0)


def _with_version(url: str) -> str:
    url = url.rstrip("/")
    if "://" not in url:
        url = f"http://{url}"
    return url if url.endswith("/v1") else f"{url}/v1"


def _may_succeed(err: Exception) -> bool:
    """Return whether the same request may succeed later."""
    import openai

    if isinstance(err, openai.APIStatusError):
        return err.status_code >= 500 or err.status_code in _RETRIED
    return isinstance(err, openai.APIError)  # no connection, no time, or no answer of the protocol


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
        return min(float(asked), 60.0)
    except ValueError:
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
