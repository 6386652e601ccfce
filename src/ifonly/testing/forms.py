"""The kit's part for forms: the function that the optimiser is told against the one that NumPy evaluates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from ifonly.arrays import FloatArray
from ifonly.data.schema import Numeric, Schema
from ifonly.models.form import Form
from ifonly.program.box import Box
from ifonly.program.cells import Cells
from ifonly.program.inputs import Inputs
from ifonly.program.mip import Affine, Mip
from ifonly.program.variables import Variables
from ifonly.solvers.backend import Limits, Solution, Status
from ifonly.solvers.registry import find_solver
from ifonly.solvers.tangents import solve
from ifonly.testing.claims import TOLERANCE, Check, require, run_all
from ifonly.testing.points import random_rows

__all__ = ["check_form", "checks_of", "form_checks"]

_LIMITS = Limits(seconds=20.0)
_NEAR = 0.15  # how far from a row its small box reaches, as a share of each range


def check_form(
    form: Form,
    schema: Schema,
    rows: npt.ArrayLike,
    *,
    samples: int = 200,
    tolerance: float = TOLERANCE,
    seed: int = 0,
) -> None:
    """Check that a form is the same function to the optimiser and to NumPy.

    At each row, the program over the whole box with its variables pinned there must give the scores that the form's
    call gives, by itself or once refined at that row. In a small box around each row, no sampled point may have a score
    beyond the least and the greatest that the program proves. Features, cuts and raw values must be what the form
    says: nothing else may change a score. `embed` is given the `Inputs` of a form and no more of the program's variables.

    Parameters
    ----------
    form
        The form.
    schema
        The features of its canonical vector.
    rows
        Canonical rows to look at, e.g. ``schema.encode(X)[:5]``; a few are enough. They may have missing values if the
        form gives those a meaning.
    samples
        How many points to draw around each row.
    tolerance
        How far scores may differ, relative to their size.
    seed
        Seed of the samples.

    Raises
    ------
    AssertionError
        With the name of the check that failed (see `form_checks`), and a sentence on what differs, and where.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from ifonly.extend import Linear
    >>> X = pd.DataFrame({"age": [20, 60], "job": ["none", "full"]})
    >>> schema = Schema.infer(X)
    >>> check_form(Linear(schema, np.array([[0.1, 1.0, 0.0]]), np.array([-3.0])), schema, schema.encode(X))
    """
    checks = form_checks(form, schema, rows, samples=samples, tolerance=tolerance, seed=seed)
    run_all(checks)


def form_checks(
    form: Form,
    schema: Schema,
    rows: npt.ArrayLike,
    *,
    samples: int = 200,
    tolerance: float = TOLERANCE,
    seed: int = 0,
) -> Iterator[Check]:
    """Yield the checks of a form, each with its name, for a test of its own; the parameters are those of `check_form`.

    The checks are independent of each other: each draws its own points.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from ifonly.extend import Linear
    >>> X = pd.DataFrame({"age": [20, 60], "job": ["none", "full"]})
    >>> schema = Schema.infer(X)
    >>> form = Linear(schema, np.array([[0.1, 1.0, 0.0]]), np.array([-3.0]))
    >>> for name, check in form_checks(form, schema, schema.encode(X)):
    ...     check()
    ...     print(name)
    rows fit the schema
    scores are finite and independent
    declarations are valid
    features are all that matter
    cells are flat
    pinned program equals the call
    program bounds the call
    """
    return checks_of(lambda: (form, schema, rows), samples=samples, tolerance=tolerance, seed=seed)


def checks_of(
    subject: Callable[[], tuple[Form, Schema, npt.ArrayLike]], *, samples: int, tolerance: float, seed: int
) -> Iterator[Check]:
    """Yield the checks of a form that is only there once somebody asks for it."""

    def run(method: Callable[[_Check, FloatArray], None], place: int) -> None:
        form, schema, rows = subject()
        U = np.atleast_2d(np.asarray(rows, dtype=np.float64))
        method(_Check(form, schema, samples, tolerance, np.random.default_rng([seed, place])), U)

    for place, (name, method) in enumerate(_FORM_CHECKS):
        yield name, partial(run, method, place)


class _Check:
    """Checks of one form, each on all rows."""

    def __init__(self, form: Form, schema: Schema, samples: int, tolerance: float, rng: np.random.Generator) -> None:
        self.form, self.schema, self.samples, self.rng = form, schema, samples, rng
        self.tolerance = tolerance
        self.backend = find_solver("highs")

    # -- NumPy's side -------------------------------------------------------------------------------------------
    def fits(self, U: FloatArray) -> None:
        """Rows have as many entries as the canonical vector."""
        width = self.schema.width
        require(U.shape[1] == width, f"rows have {U.shape[1]} entries, the canonical vector of the schema has {width}")

    def scores(self, U: FloatArray) -> None:
        """One finite score per output and row, whatever rows are beside it."""
        found = np.asarray(self.form(U))
        expected = (len(U), self.form.n_outputs)
        require(found.shape == expected, f"scores have shape {found.shape}, expected {expected}: rows and n_outputs")
        for u, together in zip(U, found, strict=True):
            require(np.isfinite(together).all(), f"the scores {together.tolist()} of {self._row(u)} are not finite")
            self._same(self.form(u[None, :])[0], together, "alone", "among other rows", u)

    def declarations(self, U: FloatArray) -> None:  # noqa: ARG002 - of the form alone
        """Features, cuts and raw values name features that there are, and numbers where numbers are meant."""
        n = len(self.schema)
        wrong = [j for j in self.form.features() if not 0 <= j < n]
        require(not wrong, f"features() names {wrong}, but the schema has {n} features")
        for what, named in (("raw()", self.form.raw()), ("cuts()", self.form.cuts())):
            others = [j for j in named if not 0 <= j < n or not isinstance(self.schema.features[j], Numeric)]
            require(not others, f"{what} names {others}, which are not numeric features")
        infinite = [j for j, cuts in self.form.cuts().items() if not np.isfinite(cuts).all()]
        require(not infinite, f"cuts() has thresholds that are not finite, of features {infinite}")

    def others_change_nothing(self, u: FloatArray) -> None:
        """A feature that `features` does not name changes no score."""
        box, here = Box.of(self.schema, u), self.form(u[None, :])[0]
        for j in sorted(set(range(len(self.schema))) - self.form.features()):
            moved, part = np.repeat(u[None, :], 8, axis=0), self.schema.slice(j)
            moved[:, part] = random_rows(box, 8, self.rng)[:, part]
            why = f"features() leaves out {self.schema.names[j]!r}, but it changes a score: "
            for v in moved:
                self._same(self.form(v[None, :])[0], here, "there", f"at {self._row(u)}", v, why)

    def cells_are_flat(self, u: FloatArray) -> None:
        """Between two neighbouring cuts, a numeric feature that does not enter by its raw value changes no score."""
        box = Box.of(self.schema, u)
        for j, feature in enumerate(self.schema.features):
            if not isinstance(feature, Numeric) or box.missing[j] or j in self.form.raw():
                continue
            cells = Cells.of(feature, float(box.lower[j]), float(box.upper[j]), self._cuts().get(j, np.empty(0)))
            lows, highs = (np.repeat(u[None, :], len(cells.low), axis=0) for _ in range(2))
            lows[:, self.schema.starts[j]], highs[:, self.schema.starts[j]] = cells.low, cells.high
            why = f"by cuts() two values of {feature.name!r} lie in one cell, and raw() does not name it: "
            for low, high, a, b in zip(lows, highs, self.form(lows), self.form(highs), strict=True):
                self._same(b, a, "there", f"at {self._row(low)}", high, why)

    # -- the optimiser's side -----------------------------------------------------------------------------------
    def pinned(self, u: FloatArray) -> None:
        """At a row, the program gives the scores of the call: exactly, or once the form is refined there."""
        mip, scores, _ = self._program(self.form, Box.of(self.schema, u), u, pin=True)
        n = self.form.n_outputs
        require(len(scores) == n, f"embed() returns {len(scores)} expressions, but n_outputs is {n}")
        true, finer = np.asarray(self.form(u[None, :]))[0], None
        for k, score in enumerate(scores):
            low, high = self._span(mip, score, u)
            room = self._room(true[k])
            require(
                low <= true[k] + room and true[k] - room <= high,
                f"the program gives score {k} of {self._row(u)} as {_between(low, high)}, NumPy as {float(true[k])!r}",
            )
            if high - low > 2.0 * room:
                finer = finer or self._refined(u, k, low, high)
                again, others, _ = self._program(finer, Box.of(self.schema, u), u, pin=True)
                low, high = self._span(again, others[k], u)
                require(
                    abs(low - true[k]) <= room and abs(high - true[k]) <= room,
                    f"refined at {self._row(u)}, the program gives score {k} there as {_between(low, high)}, NumPy as "
                    f"{float(true[k])!r}",
                )

    def _refined(self, u: FloatArray, k: int, low: float, high: float) -> Form:
        finer = self.form.refined(u)
        require(
            finer is not None,
            f"the program leaves score {k} of {self._row(u)} anywhere between {low!r} and {high!r}, and refined() says "
            "that it is exact",
        )
        assert finer is not None
        return finer

    def extremes(self, u: FloatArray) -> None:
        """No point near a row has a score beyond what the program proves to be the least and the greatest."""
        box = self._near(u)
        points = np.vstack([u[None, :], random_rows(box, self.samples, self.rng)])
        found = np.asarray(self.form(points))
        mip, scores, x = self._program(self.form, box, u, pin=False)
        for k, score in enumerate(scores):
            for sign, word in ((1.0, "least"), (-1.0, "greatest")):
                answer = self._solve(mip, score * sign)
                best = int(np.argmin(sign * found[:, k]))
                reached = sign * float(found[best, k])
                require(
                    answer.status is not Status.INFEASIBLE,
                    f"the program has no point near {self._row(u)}, not even this row",
                )
                require(
                    answer.bound <= reached + self._room(reached),
                    f"the program proves {sign * answer.bound!r} to be the {word} score {k} near {self._row(u)}, but "
                    f"NumPy gives {float(found[best, k])!r} at {self._row(points[best])}",
                )
                if answer.status is Status.OPTIMAL:
                    self._reached(x, answer, sign, k, word)

    def _reached(self, x: Variables, answer: Solution, sign: float, k: int, word: str) -> None:
        """The extreme is one: NumPy agrees at its point, or the form can be refined there."""
        assert answer.values is not None
        v = x.point(answer.values)
        true = float(np.asarray(self.form(v[None, :]))[0, k])
        require(
            abs(true - sign * answer.objective) <= 10.0 * self._room(true) or self.form.refined(v) is not None,
            f"the program gives {sign * answer.objective!r} as the {word} score {k}, at {self._row(v)}, where NumPy "
            f"gives {true!r}",
        )

    def _near(self, u: FloatArray) -> Box:
        """Return a box around a row: a part of each range, and at most two levels of each category."""
        box = Box.of(self.schema, u)
        for j, feature in enumerate(self.schema.features):
            if box.missing[j]:
                continue
            part = u[self.schema.slice(j)]
            if isinstance(feature, Numeric):
                reach = _NEAR * float(box.upper[j] - box.lower[j])
                box.narrow(j, float(part[0]) - reach, float(part[0]) + reach)
                box.lower[j], box.upper[j] = min(box.lower[j], part[0]), max(box.upper[j], part[0])
            else:
                kept = part > 0.5
                kept[int(self.rng.integers(feature.width))] = True
                box.keep_levels(j, kept)
        return box

    def _program(self, form: Form, box: Box, u: FloatArray, *, pin: bool) -> tuple[Mip, list[Affine], Variables]:
        """Return a program that holds the form over a box, its variables pinned to a row or free."""
        mip = Mip()
        x = Variables(mip, box, u, self._cuts(), form.raw())
        try:
            scores = form.embed(mip, cast("Inputs", _OnlyInputs(x)))
        except RuntimeError as error:  # what `Variables` says of a raw value that was not announced
            raise AssertionError(f"embed() asks for what raw() does not name: {error}") from error
        for j in sorted(form.features()) if pin else ():
            part = u[self.schema.slice(j)]
            if box.missing[j]:
                continue
            if not isinstance(self.schema.features[j], Numeric):
                # the level of u
                mip.row(x.level_in(j, part > 0.5), 1.0, 1.0)
                continue
            if j in form.raw():
                # the raw value of u
                mip.row(x.raw(j), float(part[0]), float(part[0]))
            for cut in self._cuts().get(j, ()):
                # the literal `x_j <= cut` as it is at u
                mip.row(x.at_most(j, float(cut)), *(2 * [float(part[0] <= cut)]))
        return mip, scores, x

    def _cuts(self) -> dict[int, FloatArray]:
        return {j: np.asarray(cuts, dtype=np.float64) for j, cuts in self.form.cuts().items()}

    def _span(self, mip: Mip, score: Affine, u: FloatArray) -> tuple[float, float]:
        """Return the least and the greatest value of a score in a pinned program."""
        ends = []
        for sign in (1.0, -1.0):
            answer = self._solve(mip, score * sign)
            close = answer.objective - answer.bound <= TOLERANCE * max(1.0, abs(answer.objective))
            require(
                answer.status is Status.OPTIMAL or (answer.values is not None and close),
                f"pinned to {self._row(u)}, the program ends as {answer.status.value}: it should allow every row",
            )
            ends.append(sign * answer.objective)
        return ends[0], ends[1]

    def _solve(self, mip: Mip, objective: Affine) -> Solution:
        mip.clear_objective()
        mip.minimise(objective)
        return solve(mip.arrays(), self.backend, _LIMITS)

    # -- saying it ----------------------------------------------------------------------------------------------
    def _room(self, score: float) -> float:
        return self.tolerance * max(1.0, abs(score))

    def _same(self, a: FloatArray, b: FloatArray, here: str, there: str, u: FloatArray, why: str = "") -> None:
        k = int(np.argmax(np.abs(a - b)))
        require(
            abs(a[k] - b[k]) <= self._room(float(b[k])),
            f"{why}score {k} of {self._row(u)} is {float(a[k])!r} {here} and {float(b[k])!r} {there}",
        )

    def _row(self, u: FloatArray) -> str:
        return str({name: self.schema.level_values(j, u) for j, name in enumerate(self.schema.names)})


def _between(low: float, high: float) -> str:
    return repr(low) if low == high else f"between {low!r} and {high!r}"


class _OnlyInputs:
    """The inputs of a form alone: whatever else the variables of a program can do is refused."""

    def __init__(self, x: Variables) -> None:
        self._x = x

    def __getattr__(self, name: str) -> Any:
        known = [n for n in vars(Inputs) if not n.startswith("_")]
        require(
            name in known,
            f"embed() uses {name!r} of its inputs, which have only {', '.join(known)} (ifonly.program.inputs.Inputs)",
        )
        return getattr(self._x, name)


def _each(method: Callable[[_Check, FloatArray], None]) -> Callable[[_Check, FloatArray], None]:
    """Return the check of all rows from that of one row."""

    def on_all(check: _Check, U: FloatArray) -> None:
        for u in U:
            method(check, u)

    return on_all


_FORM_CHECKS: tuple[tuple[str, Callable[[_Check, FloatArray], None]], ...] = (
    ("rows fit the schema", _Check.fits),
    ("scores are finite and independent", _Check.scores),
    ("declarations are valid", _Check.declarations),
    ("features are all that matter", _each(_Check.others_change_nothing)),
    ("cells are flat", _each(_Check.cells_are_flat)),
    ("pinned program equals the call", _each(_Check.pinned)),
    ("program bounds the call", _each(_Check.extremes)),
)
