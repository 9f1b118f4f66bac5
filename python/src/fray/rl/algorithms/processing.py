"""From a batch of trajectories to one that can be trained on: padding, rewards, KL penalty, advantages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fray.rl.algorithms.advantage import grpo_outcome_advantage, last_token_rewards, masked_mean
from fray.rl.algorithms.kl import KLController, KLPenalty, kl_penalty
from fray.rl.nexrl_types import Batch
from fray.rl.wire import scores_of

Array = np.ndarray[Any, np.dtype[Any]]

SAMPLED = (("responses", "log_probs"), ("response_tokens", "response_logprobs"), ("tokens", "logprobs"))
"""Fields that may have the sampled tokens, and their log probabilities; the first that is there."""

GROUPS = ("uid", "group_id")
"""Fields that may have the group of a trajectory, the first that is there."""


def padded(rows: Any, pad: float, *, left: bool = False, width: int = 0) -> Array:
    """Return rows of numbers as one array, padded on the right or on the left.

    Args:
        rows: of any lengths, or an array with two dimensions.
        pad: what to pad with; its type, int or float, is that of the array.
        left: whether to pad on the left.
        width: the least width of the array.
    """
    longest = max([width, *(len(row) for row in rows)])
    array = np.full((len(rows), longest), pad)
    for i, row in enumerate(rows):
        if len(row):
            array[i, longest - len(row) if left else 0 : longest if left else len(row)] = row
    return array


def tensors(batch: Batch, pad_token_id: int = 0) -> Batch:
    """Return a batch whose tokens are arrays.

    `responses` (batch, tokens) are padded on the right; `response_tokens` are taken where they are missing,
    and `tokens`, those of whole conversations, where these are missing too. `prompts`, where there are any,
    are padded on the left. `response_mask` is 1 for each token of a response that counts: those of
    `loss_mask`, where there is one (its last columns, if it has those of prompts too), of `attention_mask`
    in the same way, else each token.
    The log probabilities of the policy that sampled them, `log_probs`, `response_logprobs` or `logprobs` in
    the same order, become `old_log_probs`.

    Raises:
        ValueError: there are no responses, or values of tokens have other lengths than these.
    """
    values = dict(batch.values)
    name, log_probs = next((pair for pair in SAMPLED if pair[0] in values), ("", ""))
    if not name:
        raise ValueError("the trajectories have no field responses, the tokens of each response")
    values["responses"] = values.pop(name)
    if log_probs in values:
        values["old_log_probs"] = values.pop(log_probs)
    lengths = [len(row) for row in values["responses"]]
    responses = values["responses"] = padded(values["responses"], int(pad_token_id))
    width = responses.shape[1]
    if "prompts" in values:
        values["prompts"] = padded(values["prompts"], int(pad_token_id), left=True)
    mask = (np.arange(width) < np.array(lengths)[:, None]).astype(float)
    for each in ("loss_mask", "attention_mask"):
        if each in values:
            rows = zip(values[each], lengths, strict=True)
            given: list[Any] = [
                np.asarray(row, dtype=float)[-length:] if length else [] for row, length in rows
            ]
            mask = mask * _of_responses(each, given, lengths, width)
            break
    values["response_mask"] = mask
    for each in ("old_log_probs", "ref_log_prob"):
        if each in values:
            values[each] = _of_responses(each, values[each], lengths, width)
    return Batch(values, dict(batch.metadata))


def _of_responses(name: str, rows: Any, lengths: Sequence[int], width: int) -> Array:
    for i, (row, length) in enumerate(zip(rows, lengths, strict=True)):
        if len(row) != length:
            raise ValueError(
                f"{name} of trajectory {i} has {len(row)} values, and its response {length} tokens"
            )
    return padded(rows, 0.0, width=width)


def penalized(
    batch: Batch, controller: KLController | None, kind: str = KLPenalty.KL
) -> tuple[Batch, dict[str, float]]:
    """Return a batch with `token_level_rewards`, and metrics of the KL divergence.

    These are `token_level_scores`, minus the controller's coefficient times the KL penalty between
    `old_log_probs` and `ref_log_prob`, where there is a controller and the batch has both. The controller
    learns the mean divergence over tokens, then over trajectories, in nats.

    Raises:
        ValueError: a divergence is no finite number, which would stay in the coefficient for ever.
    """
    values = dict(batch.values)
    mask, rewards = values["response_mask"], values["token_level_scores"]
    current, coefficient = 0.0, 0.0
    if controller is not None and "ref_log_prob" in values and "old_log_probs" in values:
        estimates = kl_penalty(values["old_log_probs"], values["ref_log_prob"], kind)
        divergence = np.where(mask > 0, estimates, 0.0) * mask
        if not np.isfinite(divergence).all():
            (row, *_) = np.flatnonzero(~np.isfinite(divergence).all(axis=1))
            raise ValueError(
                f"the KL divergence of trajectory {row} is not finite; its log probabilities of the policy "
                "or of the reference are not"
            )
        coefficient = controller.value
        rewards = rewards - coefficient * divergence
        current = float(masked_mean(divergence, mask).mean())
        controller.update(current, len(batch))
    values["token_level_rewards"] = rewards
    return Batch(values, dict(batch.metadata)), {"critic/kl": current, "critic/kl_coeff": coefficient}


def scored(batch: Batch) -> Batch:
    """Return a batch with `token_level_scores`: those it has, else each `reward` at its last token.

    Raises:
        ValueError: it has neither.
    """
    if "token_level_scores" in batch.values:
        return batch
    if "reward" not in batch.values:
        raise ValueError("the trajectories have no field reward, a number for each")
    scores = last_token_rewards(
        [float(value) for value in batch.values["reward"]], batch.values["response_mask"]
    )
    return Batch({**batch.values, "token_level_scores": scores}, dict(batch.metadata))


def groups_of(batch: Batch) -> list[Any]:
    """Return the group of each trajectory: its `uid`, else its `group_id`.

    Raises:
        ValueError: there is neither.
    """
    for name in GROUPS:
        if name in batch.values:
            return [value.item() if isinstance(value, np.generic) else value for value in batch.values[name]]
    raise ValueError(
        "the trajectories have no field uid or group_id, so there are no groups; "
        "copy the task's group_id into them"
    )


def grpo(
    batch: Batch,
    *,
    pad_token_id: int = 0,
    controller: KLController | None = None,
    kind: str = KLPenalty.KL,
) -> tuple[Batch, dict[str, float]]:
    """Return a batch with `advantages` and `returns` of GRPO, and metrics.

    Args:
        batch: of trajectories, with `responses`, `reward` and `uid` or `group_id`, see `tensors`.
        pad_token_id: what tokens are padded with.
        controller: of the KL penalty in rewards; None: no penalty.
        kind: the estimate of the KL penalty.

    Raises:
        ValueError: a field is missing, or has another length than its response.
    """
    groups = groups_of(batch)
    prepared = scored(tensors(batch, pad_token_id))
    rewarded, metrics = penalized(prepared, controller, kind)
    mask = rewarded.values["response_mask"]
    advantages, deviations = grpo_outcome_advantage(rewarded.values["token_level_rewards"], mask, groups)
    spread = list(deviations.values())
    metrics |= {
        "critic/grpo_std/mean": float(np.mean(spread)),
        "critic/grpo_std/min": min(spread),
        "critic/grpo_std/max": max(spread),
        "critic/grpo_num": float(len(spread)),
        "critic/score/mean": float(rewarded.values["token_level_scores"].sum(axis=-1).mean()),
        "response_length/mean": float(mask.sum(axis=-1).mean()),
        **{f"rollout/{name}": value for name, value in mean_scores(batch).items()},
    }
    values = {**rewarded.values, "advantages": advantages, "returns": advantages}
    return Batch(values, dict(rewarded.metadata)), metrics


def mean_scores(batch: Batch) -> dict[str, float]:
    """Return the mean of each score over the trajectories that have it."""
    found: dict[str, list[float]] = {}
    names = [name for name in ("scores", "score", "reward") if name in batch.values]
    for i in range(len(batch)):
        row: Mapping[str, Any] = {name: batch.values[name][i] for name in names}
        for name, value in scores_of(dict(row)).items():
            found.setdefault(name, []).append(value)
    return {name: float(np.mean(values)) for name, values in sorted(found.items())}
