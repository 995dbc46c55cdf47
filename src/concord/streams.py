"""Random streams: a generator from a master seed and labels, never from global state."""

import hashlib
import secrets

import numpy as np

from concord.errors import ConcordError, short
from concord.options import Index, build

# Chains draw their noise, and advance together, in blocks of so many: a block's draws do not depend
# on how many chains there are besides, nor on which job samples it. Large enough that a step's
# arithmetic outweighs the cost of starting it.
CHAINS_PER_BLOCK = 50


class _Default(int):
    """The type of the default seed, which a caller who gives none gets."""


SEED = _Default(1)
Rng = int | np.random.Generator | None


def seed_of(seed: object, rng: object = None) -> int:
    """Return a caller's seed; for None a fresh one from the operating system.

    rng: in its place a seed, or a generator, which draws one; None: not given.
    """
    if rng is not None and seed is not SEED:
        raise ConcordError(f"rng: seed is {short(seed)} besides; give one of the two")
    # 53 bits: JSON and YAML readers that take numbers for doubles hold it exactly.
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(2**53))
    if rng is not None and not isinstance(rng, (int, np.integer)):
        raise ConcordError(
            f"rng: {short(rng)} does not fit; give integer >= 0, or numpy.random.default_rng(1)"
        )
    if rng is not None:
        return build(Index, rng, "rng")
    return secrets.randbits(53) if seed is None else build(Index, seed, "seed")


def generator(seed: int, *labels: str | int) -> np.random.Generator:
    """Return the random generator of the stream that a seed and labels determine.

    Streams with different labels are independent, and a stream depends on nothing but its labels
    and the seed: not on job order, the number of cores or the machine. Samplers that share labels
    share random numbers (data, initial states); those that do not are independent (noise).

    seed: master seed, a non-negative integer. labels: what the stream is for, from general to
    particular, such as ``("noise", "ring")``.
    """
    return np.random.Generator(np.random.PCG64(seeds(seed, *labels)))


def seeds(seed: int, *labels: str | int) -> np.random.SeedSequence:
    """Return the seed sequence of the stream that a seed and labels determine."""
    # Length-prefixed so that ("ab", "c") and ("a", "bc") differ; a digest because labels are text.
    text = "".join(f"{len(str(label))}:{label}" for label in labels)
    digest = hashlib.sha256(text.encode()).digest()
    words = np.frombuffer(digest, dtype="<u4").tolist()
    return np.random.SeedSequence([seed, *words])
