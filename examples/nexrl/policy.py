"""A policy small enough to read: one attention head that copies characters of its prompt.

For the token at place t of an answer, place p of the prompt has the weight
softmax(attention[t])[p], and the logits are

    sum over p of weight[p] * table[prompt[p]]  +  bias[t]

so that the policy reverses a number once attention[t] prefers place 2 - t and
table prefers each digit for itself. Gradients are written out below, and
test_gradients compares them with finite differences.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields

import numpy as np

TOKENS = "0123456789"
END = len(TOKENS)  # ends an answer
VOCABULARY = END + 1
PAD = -1  # no token, behind a shorter prompt or answer
PROMPT_LENGTH = 3
ANSWER_LENGTH = 4  # three digits and END
PRIOR = 1.0  # logits of what the untrained policy knows


@dataclass
class Weights:
    """The parameters, or anything of their shapes: gradients, moments."""

    attention: np.ndarray  # (ANSWER_LENGTH, PROMPT_LENGTH)
    table: np.ndarray  # (VOCABULARY, VOCABULARY)
    bias: np.ndarray  # (ANSWER_LENGTH, VOCABULARY)

    def arrays(self) -> dict[str, np.ndarray]:
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @classmethod
    def zeros(cls) -> "Weights":
        return cls(
            np.zeros((ANSWER_LENGTH, PROMPT_LENGTH)),
            np.zeros((VOCABULARY, VOCABULARY)),
            np.zeros((ANSWER_LENGTH, VOCABULARY)),
        )

    @classmethod
    def initial(cls, seed: int) -> "Weights":
        """Random, of a policy that knows a little: it repeats digits of its prompt, and ends after three."""
        rng = np.random.default_rng(seed)
        weights = cls(
            **{name: 0.1 * rng.standard_normal(array.shape) for name, array in cls.zeros().arrays().items()}
        )
        weights.table[:END, :END] += PRIOR * np.eye(END)
        weights.bias[PROMPT_LENGTH, END] += PRIOR
        return weights


def encode(text: str) -> np.ndarray:
    """The tokens of a prompt, padded. A character that is no digit is an error."""
    tokens = [TOKENS.index(character) for character in text]
    if not 0 < len(tokens) <= PROMPT_LENGTH:
        raise ValueError(f"want a prompt of 1 to {PROMPT_LENGTH} digits, got {text!r}")
    return np.array(tokens + [PAD] * (PROMPT_LENGTH - len(tokens)))


def decode(tokens: Iterable[int]) -> str:
    return "".join(TOKENS[token] for token in tokens if 0 <= token < END)


def logits(weights: Weights, prompts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Logits, and what each place of an answer attends to.

    Shapes (prompts, ANSWER_LENGTH, VOCABULARY) and (prompts, ANSWER_LENGTH, PROMPT_LENGTH).
    """
    scores = np.where(prompts[:, None, :] == PAD, -np.inf, weights.attention[None])
    attended = np.exp(scores - scores.max(axis=-1, keepdims=True))
    attended /= attended.sum(axis=-1, keepdims=True)
    return attended @ weights.table[prompts] + weights.bias, attended


def log_softmax(values: np.ndarray) -> np.ndarray:
    shifted: np.ndarray = values - values.max(axis=-1, keepdims=True)
    scaled: np.ndarray = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return scaled


Seed = int | list[int] | None


def answer(
    weights: Weights, prompt: np.ndarray, temperature: float, seed: Seed, most: int = ANSWER_LENGTH
) -> tuple[list[int], list[float]]:
    """One answer: its tokens, with END if it comes, and their log probabilities. Greedy at temperature 0."""
    values = logits(weights, prompt[None])[0][0]
    scaled = log_softmax(values / temperature if temperature > 0 else values)
    rng = np.random.default_rng(seed)
    tokens: list[int] = []
    for place in range(min(most, ANSWER_LENGTH)):
        if temperature > 0:
            # The inverse of the distribution function: one draw for each token.
            token = int(np.searchsorted(np.cumsum(np.exp(scaled[place])), rng.random() * 0.999999999))
        else:
            token = int(scaled[place].argmax())
        tokens.append(token)
        if token == END:
            break
    return tokens, [float(scaled[place, token]) for place, token in enumerate(tokens)]


def log_probabilities(weights: Weights, prompts: np.ndarray, answers: np.ndarray) -> np.ndarray:
    """Those of the tokens of answers, both padded: (answers, ANSWER_LENGTH), 0 where there is no token."""
    scored = log_softmax(logits(weights, prompts)[0])
    chosen = np.take_along_axis(scored, np.maximum(answers, 0)[..., None], axis=-1)[..., 0]
    return np.where(answers == PAD, 0.0, chosen)


def loss_and_gradient(
    weights: Weights,
    prompts: np.ndarray,
    answers: np.ndarray,
    mask: np.ndarray,
    advantages: np.ndarray,
    old_log_probs: np.ndarray,
    total: float,
    clip: float = 0.2,
) -> tuple[float, Weights]:
    """The clipped surrogate objective as a loss, and its gradient.

    J. Schulman et al., "Proximal Policy Optimization Algorithms", 2017 (https://arxiv.org/abs/1707.06347),
    equation 7: with ratio = exp(log p - old log p), the loss of a token is
    -min(ratio * A, clip(ratio, 1 - c, 1 + c) * A). Its sum is divided by total, the number of tokens of the
    whole batch, of which these may be a part.
    """
    width = answers.shape[1]  # of the longest answer of the batch
    values, attended = (each[:, :width] for each in logits(weights, prompts))
    scored = log_softmax(values)
    chosen = np.take_along_axis(scored, np.maximum(answers, 0)[..., None], axis=-1)[..., 0]
    ratio = np.exp(np.where(mask > 0, chosen - old_log_probs, 0.0))
    plain, clipped = ratio * advantages, np.clip(ratio, 1 - clip, 1 + clip) * advantages
    loss = -(np.minimum(plain, clipped) * mask).sum() / total

    # d loss / d log p is -ratio * A where the plain product is the smaller one, and 0 where the clip is.
    by_log_p = np.where(plain <= clipped, -plain, 0.0) * mask / total
    one_hot = np.eye(VOCABULARY)[np.maximum(answers, 0)]
    by_logits = by_log_p[..., None] * (one_hot - np.exp(scored))  # (n, t, v)

    gradient = Weights.zeros()
    gradient.bias[:width] = by_logits.sum(axis=0)
    by_rows = np.einsum("ntp,ntv->npv", attended, by_logits)
    np.add.at(gradient.table, prompts, np.where(prompts[..., None] == PAD, 0.0, by_rows))
    by_attended = np.einsum("ntv,npv->ntp", by_logits, weights.table[prompts])
    inner = (attended * by_attended).sum(axis=-1, keepdims=True)
    gradient.attention[:width] = (attended * (by_attended - inner)).sum(axis=0)
    return float(loss), gradient


class Adam:
    """Algorithm 1 of D. Kingma, J. Ba, "Adam: A Method for Stochastic Optimization", 2015.

    https://arxiv.org/abs/1412.6980
    """

    def __init__(self, rate: float, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8):
        self.rate, self.beta1, self.beta2, self.epsilon = rate, beta1, beta2, epsilon
        self.count, self.first, self.second = 0, Weights.zeros(), Weights.zeros()

    def update(self, weights: Weights, gradient: Weights) -> None:
        self.count += 1
        for name, value in gradient.arrays().items():
            first, second, parameter = (getattr(each, name) for each in (self.first, self.second, weights))
            first += (1 - self.beta1) * (value - first)
            second += (1 - self.beta2) * (value * value - second)
            unbiased = first / (1 - self.beta1**self.count)
            spread = np.sqrt(second / (1 - self.beta2**self.count))
            parameter -= self.rate * unbiased / (spread + self.epsilon)
