"""Inference: a pool of servers, found by name by a job that asks them.

Run it with `python examples/client/inference.py`.
"""

import json
import tempfile
from pathlib import Path

from fray.v2 import Entrypoint, JobRequest, ResourceConfig, current_client, get_actor

SMALL = ResourceConfig(cpu=0.25, ram="200m")


class Server:
    """Answers prompts, as stand-in for a model."""

    def __init__(self, model: str) -> None:
        self.model = model
        self.answered = 0

    def generate(self, prompts: list[str]) -> list[str]:
        """Return an answer to each prompt."""
        self.answered += len(prompts)
        return [f"{self.model} on {prompt!r}" for prompt in prompts]

    def count(self) -> int:
        """Return how many prompts were answered."""
        return self.answered


def ask(names: list[str], prompts: list[str], answers: str) -> None:
    """Spread prompts over servers, and write the answers to a file."""
    servers = [get_actor(name) for name in names]
    calls = [servers[i % len(servers)].generate.remote([prompt]) for i, prompt in enumerate(prompts)]
    Path(answers).write_text(json.dumps([answer for call in calls for answer in call.result(timeout=600)]))


def main() -> None:
    """Have a job ask a pool a few questions."""
    client = current_client()
    pool = client.create_actor_group(Server, "llama", name="inference", count=2, resources=SMALL)
    servers = pool.wait_ready(timeout=600)
    answers = Path(tempfile.mkdtemp(prefix="fray-inference-"), "answers.json")  # in storage that is shared
    prompts = ["Hello, world!", "What is the capital of France?", "Why?"]
    names = [server.name for server in servers]
    job = client.submit(
        JobRequest(
            name="ask",
            entrypoint=Entrypoint.from_callable(ask, args=(names, prompts, str(answers))),
            resources=SMALL,
        )
    )
    job.wait(timeout=600, raise_on_failure=True)
    print(f"result: {json.loads(answers.read_text())} by {[server.count() for server in servers]} answers")
    pool.terminate()
    client.shutdown()


if __name__ == "__main__":
    main()
