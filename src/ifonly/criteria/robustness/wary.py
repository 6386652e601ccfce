"""Wary votes: a member of a hard vote counts for the wanted class only where it clears its ties by a little.

The lead in votes has no size that says how near its members are to a tie, so a margin on it keeps none of them away from
one: the cheapest answer has a ball whose surface touches a tie, and what lies next to it neither solver nor adversary can
tell. With ``s_c - room`` in place of the wanted class's score ``s_c``, a tie lies `room` inside the class's own region.
Answers are asked to hold with all of the room, and attacked with half of it; so what touches the first is clear of the
second, and no point of the ball is left out.

The room is a share of what a member's lead ranges over at all, because a solver is off by such a share; but no more than a
share of what it ranges over in the ball: an outlier in a column that stays where it is must not make answers dearer. Where
that leaves less than a solver can tell, ties are met again, and nothing is called proven.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ifonly.arrays import FloatArray
from ifonly.models.abilities import HardVote, WeightedSum
from ifonly.models.form import Form
from ifonly.models.forms.compose import score_bounds
from ifonly.program.box import Box
from ifonly.tolerances import SAME_POINT

__all__ = ["votes_of", "wary"]


def wary(form: Form, good: FloatArray, rooms: Sequence[tuple[Box, float]]) -> Form:
    """Return the form of a vote whose members clear their ties by a share of what their leads range over in a box.

    Of several boxes with their shares in `rooms`, the least room counts.
    `good` has the sign, per score, of what a rise of it does for the goal. Forms that are no weighted sum of votes, and
    members whose scores take finitely many values, are what they were.
    """
    if isinstance(form, WeightedSum):
        parts = form.summands()
        own = zip(parts, form.directions(good), strict=True) if parts else ()
        warier = tuple(wary(part, direction, rooms) for part, direction in own)
        same = all(new is old for new, old in zip(warier, parts, strict=True))
        return form if same else form.of_summands(warier)
    return _wary_votes(form, good, rooms) if isinstance(form, HardVote) and form.raw() else form


def votes_of(form: Form) -> list[HardVote]:
    """Return the members of a vote whose scores are continuous."""
    if isinstance(form, WeightedSum):
        return [votes for part in form.summands() for votes in votes_of(part)]
    return [form] if isinstance(form, HardVote) and form.raw() else []


def _wary_votes(form: HardVote, good: FloatArray, rooms: Sequence[tuple[Box, float]]) -> Form:
    """Return the votes with ``s_c - room`` in place of the score of the one class ``c`` that does good, if there is one."""
    best = int(np.argmax(good))
    others = np.delete(good, best)
    if not (good[best] > others.max() and np.allclose(others, others[0], **SAME_POINT)):
        return form
    room = min(share * _range(form, best, box) for box, share in rooms)
    return form.handicapped(best, room)


def _range(form: HardVote, best: int, box: Box) -> float:
    """Return the widest range of a lead of class `best` over a box."""
    low, high = score_bounds(form.gaps(), box)
    return max(float(b - a) for pair, a, b in zip(form.pairs(), low, high, strict=True) if best in pair)
