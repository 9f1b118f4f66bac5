"""The mathematics of the example in one process: no roles, no services, no files.

    python single.py [STEPS]

Prints greedy exact match on the validation prompts every ten steps.
"""

import sys
import time

import numpy as np
import policy
import reverse

from fray.rl.algorithms.advantage import grpo_outcome_advantage, last_token_rewards

PROMPTS, ROLLOUTS = 32, 8
RATE = 0.05
SEED = 0


def exact_match(weights: policy.Weights, prompts: list[str]) -> float:
    """The share of prompts that are answered right, greedily."""
    answers = (policy.answer(weights, policy.encode(prompt), 0.0, None)[0] for prompt in prompts)
    return float(np.mean([policy.decode(a) == reverse.target(p) for p, a in zip(prompts, answers)]))


def rollout(weights: policy.Weights, prompts: list[str], seed: int) -> dict[str, np.ndarray]:
    """ROLLOUTS answers for each prompt, with their rewards."""
    rows = [(prompt, number) for prompt in prompts for number in range(ROLLOUTS)]
    encoded = np.stack([policy.encode(prompt) for prompt, _ in rows])
    answers = np.full((len(rows), policy.ANSWER_LENGTH), policy.PAD)
    old = np.zeros(answers.shape)
    rewards = np.zeros(len(rows))
    for row, (prompt, _) in enumerate(rows):
        tokens, logs = policy.answer(weights, encoded[row], 1.0, seed * len(rows) + row)
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


def main(steps: int) -> float:
    train, validation = reverse.split()
    weights, optimizer = policy.Weights.initial(SEED), policy.Adam(RATE)
    began = time.monotonic()
    print(f"step 0: exact match {exact_match(weights, validation):.3f}")
    for step in range(1, steps + 1):
        first = (step - 1) * PROMPTS % len(train)
        batch = rollout(weights, train[first : first + PROMPTS], step)
        rewards = batch.pop("rewards")
        _, gradient = policy.loss_and_gradient(weights, **batch, total=batch["mask"].sum())
        optimizer.update(weights, gradient)
        if step % 10 == 0:
            matched = exact_match(weights, validation)
            print(f"step {step}: reward {rewards.mean():.3f}, exact match {matched:.3f}")
    print(f"{time.monotonic() - began:.2f} s")
    return exact_match(weights, validation)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60)
