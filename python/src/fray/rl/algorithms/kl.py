"""How far a policy has gone from its reference, per token, and the coefficients of that penalty."""

from __future__ import annotations

import math
from enum import StrEnum
from typing import Any, Protocol

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

LOG_RATIO_LIMIT = 5.0
"""The low-variance estimate clamps log ratios to this, on either side, before it takes their exponential."""
LOW_VARIANCE_LIMIT = 10.0
"""And its result to this."""
PROPORTIONAL_LIMIT = 0.2
"""The largest relative error that the adaptive controller reacts to, on either side."""


class KLPenalty(StrEnum):
    """The estimates of KL(policy || reference) at one sampled token, as algorithm.kl_penalty names them."""

    KL = "kl"
    ABS = "abs"
    MSE = "mse"
    LOW_VAR_KL = "low_var_kl"


def kl_penalty(log_prob: Array, ref_log_prob: Array, kind: str = KLPenalty.KL) -> Array:
    """Return an estimate of KL(policy || reference) for each token that the policy sampled.

    With r = log_prob - ref_log_prob these are, after J. Schulman, "Approximating KL Divergence", 2020
    (http://joschu.net/blog/kl-approx.html):

    - kl: r, unbiased, of high variance, negative at times (k1 there);
    - abs: |r|;
    - mse: r^2 / 2, biased, of low variance (k2);
    - low_var_kl: exp(-r) - 1 + r, unbiased, of low variance, never negative (k3). Here -r is first
      clamped to [-5, 5], and the result to [-10, 10].

    Args:
        log_prob: log probabilities of the policy in nats, of any shape.
        ref_log_prob: those of the reference, of the same shape.
        kind: which estimate.

    Raises:
        ValueError: the kind is none of these.
    """
    difference: Array = np.asarray(log_prob) - np.asarray(ref_log_prob)
    match kind:
        case KLPenalty.KL:
            return difference
        case KLPenalty.ABS:
            estimate: Array = np.abs(difference)
        case KLPenalty.MSE:
            estimate = 0.5 * np.square(difference)
        case KLPenalty.LOW_VAR_KL:
            log_ratio = np.clip(-difference, -LOG_RATIO_LIMIT, LOG_RATIO_LIMIT)
            estimate = np.clip(np.exp(log_ratio) - log_ratio - 1, -LOW_VARIANCE_LIMIT, LOW_VARIANCE_LIMIT)
        case _:
            raise ValueError(f"algorithm.kl_penalty: want one of {', '.join(KLPenalty)}, got {kind!r}")
    return estimate


class KLController(Protocol):
    """Chooses the coefficient of the KL penalty."""

    value: float

    def update(self, current_kl: float, n_steps: int) -> None:
        """Take note of the KL divergence that the last n_steps samples had, in nats."""


class AdaptiveKLController:
    """Keeps the KL divergence near a target, with a proportional controller in log space.

    D. Ziegler et al., "Fine-Tuning Language Models from Human Preferences", 2019
    (https://arxiv.org/abs/1909.08593), section 2.2: with e = clip(KL / target - 1, -0.2, 0.2) the coefficient
    is multiplied by 1 + e * n_steps / horizon.
    """

    def __init__(self, init_kl_coef: float, target_kl: float, horizon: float) -> None:
        """Begin with a coefficient.

        Args:
            init_kl_coef: the first coefficient.
            target_kl: the wanted divergence in nats, above 0.
            horizon: in how many samples an error of 1 would double the coefficient, above 0.

        Raises:
            ValueError: a target or a horizon is not above 0, or a number is not finite.
        """
        for name, number in (("init_kl_coef", init_kl_coef), ("target_kl", target_kl), ("horizon", horizon)):
            if not math.isfinite(number):
                raise ValueError(f"algorithm.kl_ctrl.{name}: want a finite number, got {number}")
        if target_kl <= 0 or horizon <= 0:
            raise ValueError(
                f"algorithm.kl_ctrl: want target_kl and horizon above 0, got {target_kl} and {horizon}"
            )
        self.value = init_kl_coef
        self.target = target_kl
        self.horizon = horizon

    def update(self, current_kl: float, n_steps: int) -> None:
        """Take note of the KL divergence that the last n_steps samples had, in nats."""
        error = min(max(current_kl / self.target - 1, -PROPORTIONAL_LIMIT), PROPORTIONAL_LIMIT)
        self.value *= 1 + error * n_steps / self.horizon


class FixedKLController:
    """Has one coefficient for ever."""

    def __init__(self, kl_reward_coef: float) -> None:
        self.value = kl_reward_coef

    def update(self, current_kl: float, n_steps: int) -> None:
        """Leave the coefficient as it is."""
