"""Growing Spheres, from its description.

Laugel et al. (2017), "Inverse classification for comparison-based interpretability in machine learning".

Generation: draw points uniformly in the ball of radius eta around the factual; while one of them has the wanted class,
halve eta. Then draw in the layers SL(x, a0, a1) of the same width, one after the other, until points of the wanted
class appear; the nearest of them is e. Feature selection: of the coordinates in which e still differs, set the one that
differs least back to the factual's, as long as the class stays.

Numbers are scaled to their range; a category has a coordinate per level, and a point has the level whose coordinate is
greatest. Frozen features are not drawn. The method knows no whole numbers and no ranges: of a loan, it proposes durations
below 0. With ``within``, which is not in the paper, numbers that leave their range are drawn to its end.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from benchmarks.peers.encoding import Encoding, FloatArray

__all__ = ["grow", "in_layer"]

Wanted = Callable[[FloatArray], npt.NDArray[np.bool_]]
_HALVINGS = 60
_LAYERS = 100_000


def in_layer(rng: np.random.Generator, count: int, size: int, inner: float, outer: float) -> FloatArray:
    """Draw points uniformly in ``{z : inner <= ||z|| <= outer}``."""
    direction = rng.standard_normal((count, size))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    share = rng.uniform(size=(count, 1))
    # In units of the outer radius, so that no power overflows or vanishes.
    ratio = inner / outer
    radius = outer * (ratio**size + share * (1.0 - ratio**size)) ** (1.0 / size)
    return np.asarray(direction * radius)


def grow(
    factual: FloatArray,
    encoding: Encoding,
    wanted: Wanted,
    *,
    frozen: tuple[str, ...] = (),
    within: bool = False,
    eta: float = 0.5,
    count: int = 2000,
    seconds: float = np.inf,
    seed: int = 0,
) -> FloatArray | None:
    """Return a coded counterfactual of a coded row, or None when the time is up.

    Parameters
    ----------
    factual
        One number per feature; of a category, the position of its level.
    wanted
        Says which coded rows have the wanted class.
    within
        Whether numbers keep to their range.
    eta
        The first radius, in units of the ranges.
    count
        Points per layer.
    """
    deadline = time.perf_counter() + seconds
    rng = np.random.default_rng(seed)
    space = _Space(factual, encoding, frozen, within=within)
    for _ in range(_HALVINGS):
        if not wanted(space.codes(in_layer(rng, count, space.size, 0.0, eta))).any():
            break
        eta /= 2.0
    inner = eta
    for _ in range(_LAYERS):
        if time.perf_counter() > deadline:
            return None
        z = in_layer(rng, count, space.size, inner, inner + eta)
        rows = space.codes(z)
        enemies = np.flatnonzero(wanted(rows))
        if len(enemies):
            nearest = enemies[int(np.linalg.norm(z[enemies], axis=1).argmin())]
            return _sparser(factual, rows[nearest], encoding, wanted)
        inner += eta
    return None


def _sparser(factual: FloatArray, enemy: FloatArray, encoding: Encoding, wanted: Wanted) -> FloatArray:
    """Set coordinates back to the factual's, the least different first, as long as the class stays."""
    out = enemy.copy()
    while True:
        gaps = np.array(
            [
                float(a != b) if f.kind == "category" else abs(a - b) / f.span
                for f, a, b in zip(encoding.fields, out, factual, strict=True)
            ]
        )
        gaps[out == factual] = np.inf
        least = int(gaps.argmin())
        if not np.isfinite(gaps[least]):
            return out
        trial = out.copy()
        trial[least] = factual[least]
        if not wanted(trial[None, :])[0]:
            return out
        out = trial


class _Space:
    """Moves from the factual in scaled coordinates, and the coded rows they lead to."""

    def __init__(self, factual: FloatArray, encoding: Encoding, frozen: tuple[str, ...], *, within: bool) -> None:
        self.factual, self.within = factual, within
        self.free = [(j, f) for j, f in enumerate(encoding.fields) if f.name not in frozen]
        self.size = sum(len(f.levels) if f.kind == "category" else 1 for _, f in self.free)

    def codes(self, z: FloatArray) -> FloatArray:
        """Return the coded rows at these moves."""
        out = np.tile(self.factual, (len(z), 1))
        at = 0
        for j, field in self.free:
            if field.kind == "category":
                width = len(field.levels)
                now = np.zeros(width)
                now[int(self.factual[j])] = 1.0
                out[:, j] = (now + z[:, at : at + width]).argmax(axis=1)
            else:
                width = 1
                out[:, j] = self.factual[j] + z[:, at] * field.span
                if self.within:
                    out[:, j] = np.clip(out[:, j], min(field.low, self.factual[j]), max(field.high, self.factual[j]))
            at += width
        return out
