"""The inference server of the example, with the routes and fields of OpenAI's API.

    python inference.py

or, where service.inference_service.class is "inference:InferenceService",
`python -m fray.rl inference_service`. POST /v1/completions and /v1/chat/completions, streamed or not, with logprobs,
seed, n, temperature and max_tokens; GET /v1/models and /healthz. As vLLM's
servers do, it takes "return_token_ids", and then adds the ids of the tokens.

Model "reverse" is the policy, with the weights that it was last given: by the
method update_weights of the actor inference_service_INDEX, or by POST
/update_weights {"path", "version"}. Model "calculator" is a program that works
an expression out with the tools of the request.

It listens on FRAY_PORT_HTTP, else on the port of service.inference_service.url,
else on any.
"""

import json
import os
import secrets
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import calculator
import policy

from fray.rl.__main__ import main as host
from fray.rl.config import VARIABLE, load
from fray.rl.train.service import VERSION, WEIGHTS, read_arrays

REVERSE, CALCULATOR = "reverse", "calculator"
END_TEXT = "<|end|>"


class InvalidRequestError(ValueError):
    """The request cannot be answered; the status is 400."""


class Policy:
    """The weights that answers are made with; another set takes their place as a whole."""

    def __init__(self, weights: policy.Weights, version: int = 0):
        self._served = (weights, version)

    @property
    def served(self) -> tuple[policy.Weights, int]:
        return self._served

    def update_weights(self, path: str, version: int) -> int:
        """Load PATH/weights.npz, or the file PATH. Returns the version that answers are made with now."""
        source = Path(path)
        arrays = read_arrays(source / WEIGHTS if source.is_dir() else source)
        arrays.pop(VERSION, None)
        expected = policy.Weights.zeros().arrays()
        if {name: array.shape for name, array in arrays.items()} != {n: a.shape for n, a in expected.items()}:
            raise ValueError(f"{path} has weights of another policy")
        self._served = (policy.Weights(**arrays), version)
        return version

    def get_version(self) -> int:
        return self._served[1]

    def health_check(self) -> bool:
        return True


def completion(served: Policy, request: dict) -> dict:
    """The answer of /v1/completions."""
    prompts = request.get("prompt")
    prompts = [prompts] if isinstance(prompts, str) else prompts
    if not isinstance(prompts, list) or not all(isinstance(prompt, str) for prompt in prompts):
        raise InvalidRequestError("prompt: want a string or a list of strings")
    answers = [answer for prompt in prompts for answer in _answers(served, prompt, request)]
    choices = []
    for index, answer in enumerate(answers):
        choice = {"index": index, "text": answer["text"], "finish_reason": answer["finish_reason"], "logprobs": None}
        if request.get("logprobs") is not None and request.get("logprobs") is not False:
            offsets = [min(i, len(answer["text"])) for i in range(len(answer["tokens"]))]
            choice["logprobs"] = {
                "tokens": answer["tokens"], "token_logprobs": answer["log_probs"], "text_offset": offsets,
                "top_logprobs": [{token: value} for token, value in zip(answer["tokens"], answer["log_probs"])],
            }  # fmt: skip
        choices.append(choice | _ids(answer, request))
    return _envelope("text_completion", "cmpl", choices, answers)


def chat(served: Policy, request: dict) -> dict:
    """The answer of /v1/chat/completions."""
    messages = request.get("messages")
    if not isinstance(messages, list) or not messages:
        raise InvalidRequestError("messages: want a list with at least one message")
    if request.get("model") == CALCULATOR:
        message, reason = calculator.reply(messages, request.get("tools") or [])
        choice = {"index": 0, "message": message, "finish_reason": reason, "logprobs": None}
        return _envelope("chat.completion", "chatcmpl", [choice], [])
    content = messages[-1].get("content")
    if not isinstance(content, str):
        raise InvalidRequestError("messages: the last one has no text")
    answers = _answers(served, content, request)
    choices = []
    for index, answer in enumerate(answers):
        message = {"role": "assistant", "content": answer["text"]}
        choice = {"index": index, "message": message, "finish_reason": answer["finish_reason"], "logprobs": None}
        if request.get("logprobs"):
            content = [
                {"token": token, "logprob": value, "bytes": list(token.encode()), "top_logprobs": []}
                for token, value in zip(answer["tokens"], answer["log_probs"])
            ]
            choice["logprobs"] = {"content": content}
        choices.append(choice | _ids(answer, request))
    return _envelope("chat.completion", "chatcmpl", choices, answers)


def _answers(served: Policy, prompt: str, request: dict) -> list[dict]:
    weights, version = served.served
    if request.get("model") not in (None, "", REVERSE):
        raise InvalidRequestError(f"model: want {REVERSE!r}, got {request['model']!r}")
    temperature = float(request["temperature"] if request.get("temperature") is not None else 1.0)
    if not 0 <= temperature < float("inf"):
        raise InvalidRequestError(f"temperature: want a number of at least 0, got {temperature}")
    most = request.get("max_tokens") or request.get("max_completion_tokens") or policy.ANSWER_LENGTH
    try:
        tokens_of_prompt = policy.encode(prompt)
    except ValueError as error:
        raise InvalidRequestError(f"prompt: {error}") from error
    answers = []
    for number in range(int(request.get("n") or 1)):
        seed = request.get("seed")
        seed = None if seed is None else [int(seed) % 2**64, number]
        ids, log_probs = policy.answer(weights, tokens_of_prompt, temperature, seed, int(most))
        answers.append(
            {
                "text": policy.decode(ids), "ids": ids, "log_probs": log_probs, "version": version,
                "prompt_ids": [int(token) for token in tokens_of_prompt if token != policy.PAD],
                "tokens": [policy.TOKENS[token] if token < policy.END else END_TEXT for token in ids],
                "finish_reason": "stop" if ids and ids[-1] == policy.END else "length",
            }
        )  # fmt: skip
    return answers


def _ids(answer: dict, request: dict) -> dict:
    if not request.get("return_token_ids"):
        return {}
    return {"token_ids": answer["ids"], "prompt_token_ids": answer["prompt_ids"], "weights_version": answer["version"]}


def _envelope(kind: str, prefix: str, choices: list[dict], answers: list[dict]) -> dict:
    prompt, generated = sum(len(a["prompt_ids"]) for a in answers), sum(len(a["ids"]) for a in answers)
    return {
        "id": f"{prefix}-{secrets.token_hex(12)}",
        "object": kind,
        "created": int(time.time()),
        "model": REVERSE if answers else CALCULATOR,
        "choices": choices,
        "usage": {"prompt_tokens": prompt, "completion_tokens": generated, "total_tokens": prompt + generated},
    }


def chunks(whole: dict) -> list[dict]:
    """A whole answer as the events of a stream: one for each token, then the reason why it ended."""
    is_chat = whole["object"] == "chat.completion"
    head = {name: whole[name] for name in ("id", "created", "model")}
    head["object"] = "chat.completion.chunk" if is_chat else "text_completion"
    events = []
    for choice in whole["choices"]:
        index, text = choice["index"], choice["message"]["content"] or "" if is_chat else choice["text"]
        calls = choice["message"].get("tool_calls") if is_chat else None
        if calls:
            delta = {"role": "assistant", "tool_calls": [{"index": i, **call} for i, call in enumerate(calls)]}
            events.append({"index": index, "delta": delta, "finish_reason": None})
        for place, character in enumerate(text):
            logprobs = choice["logprobs"]
            part: dict
            if is_chat:
                part = {"delta": {"role": "assistant", "content": character}}
                logprobs = logprobs and {"content": logprobs["content"][place : place + 1]}
            else:
                part = {"text": character}
                logprobs = logprobs and {name: column[place : place + 1] for name, column in logprobs.items()}
            events.append({"index": index, **part, "finish_reason": None, "logprobs": logprobs})
        last: dict = {"delta": {}} if is_chat else {"text": ""}
        events.append({"index": index, **last, "finish_reason": choice["finish_reason"], "logprobs": None})
    return [{**head, "choices": [event]} for event in events]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    served: Policy

    def do_GET(self) -> None:
        if self.path == "/healthz":
            self._answer(200, {"ok": True, "version": self.served.get_version()})
        elif self.path == "/v1/models":
            common = {"object": "model", "created": 0, "owned_by": "fray"}
            self._answer(200, {"object": "list", "data": [{"id": name, **common} for name in (REVERSE, CALCULATOR)]})
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
            elif request.get("stream"):
                self._stream(chunks(routes[self.path](self.served, request)))
            else:
                self._answer(200, routes[self.path](self.served, request))
        except (InvalidRequestError, json.JSONDecodeError, KeyError) as error:
            self._fail(400, str(error))
        except Exception as error:  # the server outlives each of its requests
            self._fail(500, f"{type(error).__name__}: {error}")

    def _stream(self, events: list[dict]) -> None:
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

    def _answer(self, status: int, value: dict) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_) -> None:
        """Print nothing: there are hundreds of requests a second."""


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024


def serve_http(served: Policy, port: int = 0) -> Server:
    """Serve in a thread, until the server's shutdown."""
    handler = type("PolicyHandler", (Handler,), {"served": served})
    server = Server(("", port), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


class InferenceService(Policy):
    """The actor of a run: HTTP is served beside it. Configured by service.inference_service and the run's seed.

    The weights that were synced last, in the file config.weights or sync_weights/weights.npz of the run, take
    the place of the initial ones: a server that was started again goes on with them.
    """

    def __init__(self, config):
        super().__init__(policy.Weights.initial(int(config.get("seed") or 0)))
        out = config.get("out")
        weights = Path((config.get("config") or {}).get("weights") or f"{out}/sync_weights/{WEIGHTS}")
        if weights.exists():
            self.update_weights(str(weights), int(read_arrays(weights)[VERSION]))
        port = os.environ.get("FRAY_PORT_HTTP") or urlsplit(config.get("url") or "").port or 0
        self.http = serve_http(self, int(port))
        print(f"serving http://127.0.0.1:{self.http.server_port}/v1, version {self.get_version()}", flush=True)


def main() -> int:
    """The same where the configuration names no class."""
    config = load()
    service = config.setdefault("service", {}).setdefault("inference_service", {})
    service.setdefault("class", "inference:InferenceService")
    os.environ[VARIABLE] = json.dumps(config)
    return host(["inference_service"])


if __name__ == "__main__":
    sys.exit(main())
