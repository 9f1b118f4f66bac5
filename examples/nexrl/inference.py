"""The inference server of the example, with the routes and fields of OpenAI's API.

    python inference.py

or, where service.inference_service.class is "inference:InferenceService",
`python -m fray.rl inference_service`. POST /v1/completions and /v1/chat/completions,
streamed or not, with logprobs, seed, n, temperature and max_tokens; GET
/v1/models and /healthz. As vLLM's servers do, it takes "return_token_ids", and
then adds the ids of the tokens.

Model "reverse" is the policy, with the weights that it was last given: by the
method update_weights of the actor inference_service_INDEX, or by POST
/update_weights {"path", "version"}. The agent's service, agent.py, is served in
the same way.

It listens on FRAY_PORT_HTTP, else on the port of service.inference_service.url,
else on any.
"""

import json
import os
import secrets
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import policy

from fray.rl.__main__ import main as host
from fray.rl.config import VARIABLE, load
from fray.rl.train.service import VERSION, WEIGHTS, read_arrays

Json = dict[str, Any]  # an object of a request or an answer

REVERSE = "reverse"
END_TEXT = "<|end|>"
WORDS = (*policy.TOKENS, END_TEXT)  # by token


class InvalidRequestError(ValueError):
    """The request cannot be answered; the status is 400."""


@dataclass
class Answer:
    """What a policy wrote."""

    ids: list[int]
    log_probs: list[float]
    prompt_ids: list[int]
    words: tuple[str, ...]  # by token
    version: int  # of the weights
    text: str = ""
    calls: list[Json] = field(default_factory=list)  # of tools
    length: bool = False  # it was cut off

    @property
    def tokens(self) -> list[str]:
        return [self.words[token] for token in self.ids]

    @property
    def reason(self) -> str:
        """Why it ends, in OpenAI's words."""
        if self.calls:
            return "tool_calls"
        return "length" if self.length else "stop"

    def ids_for(self, request: Json) -> Json:
        if not request.get("return_token_ids"):
            return {}
        return {"token_ids": self.ids, "prompt_token_ids": self.prompt_ids, "weights_version": self.version}


class Served:
    """The weights that answers are made with; another set takes their place as a whole."""

    models: tuple[str, ...] = ()

    def __init__(self, weights: Any, version: int = 0):
        self._served = (weights, version)

    @property
    def served(self) -> tuple[Any, int]:
        return self._served

    def update_weights(self, path: str, version: int) -> int:
        """Load PATH/weights.npz, or the file PATH. Returns the version that answers are made with now."""
        source = Path(path)
        arrays = read_arrays(source / WEIGHTS if source.is_dir() else source)
        arrays.pop(VERSION, None)
        self._served = (self.of(arrays), version)
        return version

    def get_version(self) -> int:
        return self._served[1]

    def health_check(self) -> bool:
        return True

    # What a policy defines.

    def of(self, arrays: Mapping[str, np.ndarray]) -> Any:
        """Return the weights that arrays are, or raise a ValueError."""
        raise NotImplementedError

    def complete(self, prompt: str, request: Json) -> list[Answer]:
        del prompt, request
        raise InvalidRequestError(
            f"model {self.models[0]!r} answers conversations only, at /v1/chat/completions"
        )

    def converse(self, messages: list[Json], tools: list[Json], request: Json) -> list[Answer]:
        raise NotImplementedError


class Policy(Served):
    """The policy that reverses."""

    models = (REVERSE,)

    def of(self, arrays: Mapping[str, np.ndarray]) -> policy.Weights:
        expected = policy.Weights.zeros().arrays()
        if {name: array.shape for name, array in arrays.items()} != {n: a.shape for n, a in expected.items()}:
            raise ValueError("the weights are of another policy")
        return policy.Weights(**arrays)

    def complete(self, prompt: str, request: Json) -> list[Answer]:
        weights, version = self.served
        temperature, most = (
            temperature_of(request),
            request.get("max_tokens") or request.get("max_completion_tokens"),
        )
        try:
            tokens_of_prompt = policy.encode(prompt)
        except ValueError as error:
            raise InvalidRequestError(f"prompt: {error}") from error
        known = [int(token) for token in tokens_of_prompt if token != policy.PAD]
        answers = []
        for number in range(int(request.get("n") or 1)):
            seed = request.get("seed")
            seed = None if seed is None else [int(seed) % 2**64, number]
            ids, log_probs = policy.answer(
                weights, tokens_of_prompt, temperature, seed, int(most or policy.ANSWER_LENGTH)
            )
            cut = not ids or ids[-1] != policy.END
            answers.append(Answer(ids, log_probs, known, WORDS, version, policy.decode(ids), length=cut))
        return answers

    def converse(self, messages: list[Json], tools: list[Json], request: Json) -> list[Answer]:
        del tools
        content = messages[-1].get("content")
        if not isinstance(content, str):
            raise InvalidRequestError("messages: the last one has no text")
        return self.complete(content, request)


def temperature_of(request: Json) -> float:
    temperature = float(request["temperature"] if request.get("temperature") is not None else 1.0)
    if not 0 <= temperature < float("inf"):
        raise InvalidRequestError(f"temperature: want a number of at least 0, got {temperature}")
    return temperature


def sampled(logits: np.ndarray, temperature: float, seed: int | None) -> tuple[int, float]:
    """A token of a distribution, and its log probability. Greedy at temperature 0."""
    scaled = policy.log_softmax(logits / temperature if temperature > 0 else logits)
    if temperature > 0:
        token = int(np.random.default_rng(seed).choice(len(logits), p=np.exp(scaled)))
    else:
        token = int(scaled.argmax())
    return token, float(scaled[token])


def completion(served: Served, request: Json) -> Json:
    """The answer of /v1/completions."""
    prompts = request.get("prompt")
    prompts = [prompts] if isinstance(prompts, str) else prompts
    if not isinstance(prompts, list) or not all(isinstance(prompt, str) for prompt in prompts):
        raise InvalidRequestError("prompt: want a string or a list of strings")
    answers = [answer for prompt in prompts for answer in served.complete(prompt, request)]
    choices = []
    for index, answer in enumerate(answers):
        choice: Json = {
            "index": index, "text": answer.text, "finish_reason": answer.reason, "logprobs": None
        }  # fmt: skip
        if request.get("logprobs") is not None and request.get("logprobs") is not False:
            choice["logprobs"] = {
                "tokens": answer.tokens,
                "token_logprobs": answer.log_probs,
                "text_offset": [min(i, len(answer.text)) for i in range(len(answer.tokens))],
                "top_logprobs": [
                    {token: value} for token, value in zip(answer.tokens, answer.log_probs, strict=True)
                ],
            }
        choices.append(choice | answer.ids_for(request))
    return _envelope(served, "text_completion", "cmpl", choices, answers)


def chat(served: Served, request: Json) -> Json:
    """The answer of /v1/chat/completions."""
    messages = request.get("messages")
    if not isinstance(messages, list) or not messages:
        raise InvalidRequestError("messages: want a list with at least one message")
    answers = served.converse(messages, request.get("tools") or [], request)
    choices = []
    for index, answer in enumerate(answers):
        message: Json = {"role": "assistant", "content": answer.text}
        if answer.calls:
            message = {"role": "assistant", "content": None, "tool_calls": answer.calls}
        choice: Json = {
            "index": index, "message": message, "finish_reason": answer.reason, "logprobs": None
        }  # fmt: skip
        if request.get("logprobs"):
            choice["logprobs"] = {
                "content": [
                    {"token": token, "logprob": value, "bytes": list(token.encode()), "top_logprobs": []}
                    for token, value in zip(answer.tokens, answer.log_probs, strict=True)
                ]
            }
        choices.append(choice | answer.ids_for(request))
    return _envelope(served, "chat.completion", "chatcmpl", choices, answers)


def _envelope(served: Served, kind: str, prefix: str, choices: list[Json], answers: list[Answer]) -> Json:
    prompt, generated = sum(len(a.prompt_ids) for a in answers), sum(len(a.ids) for a in answers)
    return {
        "id": f"{prefix}-{secrets.token_hex(12)}",
        "object": kind,
        "created": int(time.time()),
        "model": served.models[0],
        "choices": choices,
        "usage": {
            "prompt_tokens": prompt,
            "completion_tokens": generated,
            "total_tokens": prompt + generated,
        },
    }


def chunks(whole: Json) -> list[Json]:
    """A whole answer as the events of a stream: one for each character, then the reason why it ended."""
    is_chat = whole["object"] == "chat.completion"
    head = {name: whole[name] for name in ("id", "created", "model")}
    head["object"] = "chat.completion.chunk" if is_chat else "text_completion"
    events = []
    for choice in whole["choices"]:
        index, text = choice["index"], choice["message"]["content"] or "" if is_chat else choice["text"]
        calls = choice["message"].get("tool_calls") if is_chat else None
        if calls:
            delta = {
                "role": "assistant",
                "tool_calls": [{"index": i, **call} for i, call in enumerate(calls)],
            }
            events.append({"index": index, "delta": delta, "finish_reason": None})
        for place, character in enumerate(text):
            logprobs = choice["logprobs"]
            part: Json
            if is_chat:
                part = {"delta": {"role": "assistant", "content": character}}
                logprobs = logprobs and {"content": logprobs["content"][place : place + 1]}
            else:
                part = {"text": character}
                logprobs = logprobs and {name: column[place : place + 1] for name, column in logprobs.items()}
            events.append({"index": index, **part, "finish_reason": None, "logprobs": logprobs})
        last: Json = {"delta": {}} if is_chat else {"text": ""}
        events.append({"index": index, **last, "finish_reason": choice["finish_reason"], "logprobs": None})
    return [{**head, "choices": [event]} for event in events]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    served: Served

    def do_GET(self) -> None:
        if self.path == "/healthz":
            self._answer(200, {"ok": True, "version": self.served.get_version()})
        elif self.path == "/v1/models":
            common = {"object": "model", "created": 0, "owned_by": "fray"}
            self._answer(
                200, {"object": "list", "data": [{"id": name, **common} for name in self.served.models]}
            )
        else:
            self._fail(404, f"no route {self.path}")

    def do_POST(self) -> None:
        routes = {"/v1/completions": completion, "/v1/chat/completions": chat}
        try:
            request = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "{}")
            if not isinstance(request, dict):
                raise InvalidRequestError("want a JSON object")
            if self.path == "/update_weights":
                version = self.served.update_weights(str(request["path"]), int(request["version"]))
                self._answer(200, {"version": version})
            elif self.path not in routes:
                self._fail(404, f"no route {self.path}")
            elif request.get("model") not in (None, "", *self.served.models):
                self._fail(400, f"model: want {self.served.models[0]!r}, got {request['model']!r}")
            elif request.get("stream"):
                self._stream(chunks(routes[self.path](self.served, request)))
            else:
                self._answer(200, routes[self.path](self.served, request))
        except (InvalidRequestError, json.JSONDecodeError, KeyError) as error:
            self._fail(400, str(error))
        except Exception as error:  # the server outlives each of its requests
            self._fail(500, f"{type(error).__name__}: {error}")

    def _stream(self, events: list[Json]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for event in events:
            self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")
            self.wfile.flush()
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def _fail(self, status: int, message: str) -> None:
        kind = "invalid_request_error" if status < 500 else "server_error"
        self._answer(status, {"error": {"message": message, "type": kind, "param": None, "code": None}})

    def _answer(self, status: int, value: Json) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Print nothing: there are hundreds of requests a second."""


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024


def serve_http(served: Served, port: int = 0) -> Server:
    """Serve in a thread, until the server's shutdown."""
    handler = type("PolicyHandler", (Handler,), {"served": served})
    server = Server(("", port), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def serve(served: Served, config: Mapping[str, Any]) -> Server:
    """Serve with the weights that were synced last: a server that was started again goes on with them.

    They are in the file config.weights, or in sync_weights/weights.npz of the run.
    """
    weights = Path(
        (config.get("config") or {}).get("weights") or f"{config.get('out')}/sync_weights/{WEIGHTS}"
    )
    if weights.exists():
        served.update_weights(str(weights), int(read_arrays(weights)[VERSION]))
    port = os.environ.get("FRAY_PORT_HTTP") or urlsplit(config.get("url") or "").port or 0
    server = serve_http(served, int(port))
    print(f"serving http://127.0.0.1:{server.server_port}/v1, version {served.get_version()}", flush=True)
    return server


class InferenceService(Policy):
    """The actor of a run: HTTP is served beside it.

    Configured by service.inference_service and the run's seed.
    """

    def __init__(self, config: Mapping[str, Any]):
        super().__init__(policy.Weights.initial(int(config.get("seed") or 0)))
        self.http = serve(self, config)


def main() -> int:
    """The same where the configuration names no class."""
    config = load()
    service = config.setdefault("service", {}).setdefault("inference_service", {})
    service.setdefault("class", "inference:InferenceService")
    os.environ[VARIABLE] = json.dumps(config)
    return host(["inference_service"])


if __name__ == "__main__":
    sys.exit(main())
