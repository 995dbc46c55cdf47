"""Random streams: a generator from a master seed and labels, never from global state."""

import hashlib
import secrets
from typing import Any

import numpy as np

from concord.compiled import kernel
from concord.options import Index, build

# Chains draw their noise, and advance together, in blocks of so many: a block's draws do not depend
# on how many chains there are besides, nor on which job samples it. Large enough that a step's
# arithmetic outweighs the cost of starting it.
CHAINS_PER_BLOCK = 50


def seed_of(value: Any) -> int:
    """Return the seed that a caller gives; of None a fresh one from the operating system."""
    # 53 bits: JSON and YAML readers that take numbers for doubles hold it exactly.
    return secrets.randbits(53) if value is None else build(Index, value, "seed")


def generator(seed: int, *labels: str | int) -> np.random.Generator:
    """Return the generator of the stream that ``labels`` name.

    Streams with different labels are independent, and a stream depends on nothing but its labels
    and the seed: not on job order, the number of cores or the machine. Samplers that share labels
    share random numbers (data, initial states); those that do not are independent (noise).

    seed: master seed, a non-negative integer. labels: what the stream is for, from general to
    particular, such as ``("noise", "ring")``.
    """
    return np.random.Generator(np.random.PCG64(seeds(seed, *labels)))


def seeds(seed: int, *labels: str | int) -> np.random.SeedSequence:
    """Return what the stream that ``labels`` name begins with."""
    # Length-prefixed so that ("ab", "c") and ("a", "bc") differ; a digest because labels are text.
    text = "".join(f"{len(str(label))}:{label}" for label in labels)
    digest = hashlib.sha256(text.encode()).digest()
    words = np.frombuffer(digest, dtype="<u4").tolist()
    return np.random.SeedSequence([seed, *words])


# Normal numbers that are drawn at once: as many as the processor's caches hold beside a step's
# arrays. A request for half as many is drawn by itself.
BLOCK = 1 << 14


class Ahead:
    """A generator's numbers, of which normal ones are drawn for several steps at once.

    They are those that the generator itself would give, whoever asks for what: where something else
    than normal numbers of double precision is drawn, the generator is put back to where it would
    be, and nothing is drawn ahead any more.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng, self._fill, self._kick = rng, kernel("normals"), kernel("kick")
        self._held, self._next, self._alone = np.empty(BLOCK), BLOCK, True

    def settle(self) -> None:
        """Put the generator to where it would be if nothing had been drawn ahead."""
        if self._next < BLOCK:
            self._rng.bit_generator.state = self._state
            self._rng.standard_normal(out=self._held[: self._next])
            self._next = BLOCK

    def __getattr__(self, name: str) -> Any:
        """Return what else the generator draws."""
        self.settle()
        self._alone = False
        return getattr(self._rng, name)

    def standard_normal(self, size: Any = None, dtype: Any = float, out: Any = None) -> Any:
        """Return normal numbers as the generator does."""
        if out is None or out.itemsize != 8:
            return self.__getattr__("standard_normal")(size, dtype, out)  # as of another kind
        if (drawn := self.normals(out)) is not out:
            np.copyto(out, drawn)
        return out

    def ahead(self, like: np.ndarray) -> np.ndarray | None:
        """Return the next normal numbers in the shape of an array, for the caller to use up.

        None where they are not all at hand; then none is taken.
        """
        end = self._next + like.size
        if end > BLOCK or like.itemsize != 8:
            return None
        found, self._next = self._held[self._next : end].reshape(like.shape), end
        return found

    def normals(self, out: np.ndarray) -> np.ndarray:
        """Return as many normal numbers, for the caller to use up: in out, or elsewhere."""
        found = self.ahead(out)
        if found is not None:
            return found
        if out.itemsize != 8:
            return self.standard_normal(out=out, dtype=out.dtype)
        missing = out.reshape(-1, copy=False)
        if left := BLOCK - self._next:
            missing[:left] = self._held[self._next :]
            missing = missing[left:]
        self._next = BLOCK
        if self._alone and missing.size <= BLOCK // 2:
            self._state = self._rng.bit_generator.state
            self._draw(self._held)
            self._next = missing.size
            missing[:] = self._held[: self._next]
        else:
            self._draw(missing)
        return out

    def _draw(self, out: np.ndarray) -> None:
        if self._fill is not None and out.size > BLOCK // 4:
            self._fill(self._rng, out)
        else:
            self._rng.standard_normal(out=out)

    def kicks(self, eta: Any, sd: Any, g: np.ndarray, x: np.ndarray, out: np.ndarray) -> bool:
        """Write x - eta g + sd w and return True, if it is compiled and w at hand."""
        if self._kick is None or not (
            isinstance(eta, float) and x.flags.c_contiguous and g.flags.c_contiguous
        ):
            return False
        w = self.ahead(g)
        if w is None:
            return False
        self._kick(eta, sd, g, w, x, out)
        return True
