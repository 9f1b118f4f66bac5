"""Rewards of tokens, and their advantages within groups."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

EPSILON = 1e-6


def last_token_rewards(scores: Sequence[float] | Array, mask: Array) -> Array:
    """Return rewards per token in which the whole score is at the last valid token.

    Args:
        scores: one for each response.
        mask: 1 where a response has a token that counts, 0 elsewhere; shape (responses, tokens).

    Returns:
        Shape (responses, tokens), float64. A response without a valid token has no reward.

    Raises:
        ValueError: there is not one score for each response.
    """
    mask = np.asarray(mask)
    values = np.asarray(scores, dtype=np.float64)
    if values.shape != mask.shape[:1]:
        raise ValueError(f"want one score for each of {mask.shape[0]} responses, got {values.shape}")
    valid = mask > 0
    rewards = np.zeros(mask.shape)
    last = mask.shape[1] - 1 - np.argmax(valid[:, ::-1], axis=1) if mask.shape[1] else np.zeros(0, int)
    rows = np.flatnonzero(valid.any(axis=1))
    rewards[rows, last[rows]] = values[rows]
    return rewards


def grpo_outcome_advantage(
    token_level_rewards: Array, mask: Array, index: Sequence[Hashable], epsilon: float = EPSILON
) -> tuple[Array, dict[Hashable, float]]:
    """Return the advantages of responses, relative to those of the same group.

    Z. Shao et al., "DeepSeekMath", 2024 (https://arxiv.org/abs/2402.03300), section 4.1.2, outcome
    supervision: with r the sum of a response's rewards, each of its tokens has the advantage
    (r - mean) / (std + epsilon) over its group, where std is that of a sample (divided by n - 1). A group of
    one has mean 0 and std 1, so that its advantage is its reward; a group of equal rewards has advantage 0.

    Args:
        token_level_rewards: shape (responses, tokens).
        mask: 1 where a response has a token that counts, 0 elsewhere; of the same shape.
        index: the group of each response.
        epsilon: keeps a group of equal rewards from a division by zero.

    Returns:
        Advantages of shape (responses, tokens), 0 where the mask is, and each group's std.

    Raises:
        ValueError: there is not one group for each response.
    """
    rewards = np.asarray(token_level_rewards, dtype=np.float64).sum(axis=-1)
    if len(index) != len(rewards):
        raise ValueError(f"want one group for each of {len(rewards)} responses, got {len(index)}")
    groups: dict[Hashable, list[int]] = {}
    for row, group in enumerate(index):
        groups.setdefault(group, []).append(row)
    normalized = np.empty_like(rewards)
    deviations: dict[Hashable, float] = {}
    for group, rows in groups.items():
        mean, deviation = 0.0, 1.0
        if len(rows) > 1:
            mean, deviation = float(rewards[rows].mean()), float(rewards[rows].std(ddof=1))
        deviations[group] = deviation
        normalized[rows] = (rewards[rows] - mean) / (deviation + epsilon)
    return normalized[:, None] * np.asarray(mask), deviations


def masked_mean(values: Array, mask: Array) -> Array:
    """Return the mean over the last axis of what the mask selects; 0 where it selects no value."""
    values, mask = np.asarray(values), np.asarray(mask)
    return np.asarray((values * mask).sum(axis=-1) / np.maximum(mask.sum(axis=-1), 1))
