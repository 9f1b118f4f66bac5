"""The mathematics of the example in one process: no roles, no coordination.

    python single.py [--served] [STEPS]

Prints greedy exact match on the validation prompts every ten steps. With --served
another process answers the prompts, as the run's inference service does: by HTTP
and the package openai, with weights that it loads after each update.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import policy
import reverse

from fray.rl.algorithms.advantage import grpo_outcome_advantage, last_token_rewards

PROMPTS, ROLLOUTS = 32, 8
RATE = 0.05
SEED = 0
COLUMNS = ("prompts", "answers", "mask", "advantages", "old_log_probs")

Answers = Callable[[str, float, int], tuple[list[int], list[float]]]  # of prompt, temperature and seed


def exact_match(answer: Answers, prompts: list[str]) -> float:
    """The share of prompts that are answered right, greedily."""
    return float(
        np.mean([policy.decode(answer(prompt, 0.0, 0)[0]) == reverse.target(prompt) for prompt in prompts])
    )


def rollout(answer: Answers, prompts: list[str], seed: int) -> dict[str, np.ndarray]:
    """ROLLOUTS answers for each prompt, with their rewards."""
    rows = [(prompt, number) for prompt in prompts for number in range(ROLLOUTS)]
    encoded = np.stack([policy.encode(prompt) for prompt, _ in rows])
    answers = np.full((len(rows), policy.ANSWER_LENGTH), policy.PAD)
    old = np.zeros(answers.shape)
    rewards = np.zeros(len(rows))
    for row, (prompt, _) in enumerate(rows):
        tokens, logs = answer(prompt, 1.0, seed * len(rows) + row)
        answers[row, : len(tokens)] = tokens
        old[row, : len(tokens)] = logs
        rewards[row] = reverse.scores(prompt, policy.decode(tokens))["reward"]
    mask = (answers != policy.PAD).astype(float)
    groups = [prompt for prompt, _ in rows]
    advantages, _ = grpo_outcome_advantage(last_token_rewards(rewards, mask), mask, groups)
    return {
        "prompts": encoded, "answers": answers, "mask": mask, "advantages": advantages,
        "old_log_probs": old, "rewards": rewards,
    }  # fmt: skip


def of(weights: policy.Weights) -> Answers:
    """Answers that are made here."""
    return lambda prompt, temperature, seed: policy.answer(weights, policy.encode(prompt), temperature, seed)


@contextmanager
def served() -> Iterator[tuple[Answers, Callable[[policy.Weights, int], None]]]:
    """Answers of an inference server, and what has it load other weights."""
    import httpx
    import openai

    from fray.rl.train.service import WEIGHTS, pack_arrays

    program = (
        "import inference, policy, sys\n"
        "server = inference.serve_http(inference.Policy(policy.Weights.initial(int(sys.argv[1]))))\n"
        "print(server.server_port, flush=True)\nsys.stdin.read()\n"
    )
    server = subprocess.Popen(
        [sys.executable, "-c", program, str(SEED)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parent,
    )
    with server, tempfile.TemporaryDirectory() as folder:
        assert server.stdin is not None
        assert server.stdout is not None
        url = f"http://127.0.0.1:{server.stdout.readline().strip()}"
        client = openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)

        def answer(prompt: str, temperature: float, seed: int) -> tuple[list[int], list[float]]:
            made = client.completions.create(
                model="reverse", prompt=prompt, temperature=temperature, seed=seed, logprobs=1,
                extra_body={"return_token_ids": True},
            )  # fmt: skip
            choice = made.choices[0]
            assert choice.logprobs is not None
            return (choice.model_extra or {})["token_ids"], choice.logprobs.token_logprobs or []

        def update(weights: policy.Weights, version: int) -> None:
            (Path(folder) / WEIGHTS).write_bytes(pack_arrays({**weights.arrays(), "version": version}))
            httpx.post(f"{url}/update_weights", json={"path": folder, "version": version}).raise_for_status()

        yield answer, update
        server.stdin.close()


def learn(
    steps: int, answer: Answers, weights: policy.Weights, update: Callable[[policy.Weights, int], None]
) -> float:
    """Train the weights, and return the exact match at the end."""
    train, validation = reverse.split()
    optimizer = policy.Adam(RATE)
    print(f"step 0  val/exact_match {exact_match(answer, validation):.3f}")
    began, matched = time.monotonic(), 0.0
    for step in range(1, steps + 1):
        first = (step - 1) * PROMPTS % len(train)
        batch = rollout(answer, train[first : first + PROMPTS], step)
        rewards = batch.pop("rewards")
        total = float(batch["mask"].sum())
        prompts, answers, mask, advantages, old = (batch[name] for name in COLUMNS)
        _, gradient = policy.loss_and_gradient(weights, prompts, answers, mask, advantages, old, total)
        optimizer.update(weights, gradient)
        update(weights, step)
        if step % 10 == 0 or step == steps:
            matched = exact_match(answer, validation)
            print(f"step {step}  val/exact_match {matched:.3f}  rollout/reward {rewards.mean():.3f}")
    print(f"{steps} steps in {time.monotonic() - began:.2f} s")
    return matched


def main(steps: int, other_process: bool = False) -> float:
    weights = policy.Weights.initial(SEED)
    if not other_process:
        return learn(steps, of(weights), weights, lambda *_: None)
    with served() as (answer, update):
        return learn(steps, answer, weights, update)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("steps", nargs="?", type=int, default=60)
    parser.add_argument("--served", action="store_true", help="completions of an inference server")
    given = parser.parse_args()
    main(given.steps, given.served)
