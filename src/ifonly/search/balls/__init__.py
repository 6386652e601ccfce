"""Answers that hold all over a ball, without a solver: of linear scores, sums of trees and networks."""

from __future__ import annotations

from ifonly.search.balls.linear import LinearBalls
from ifonly.search.balls.networks import NetworkBalls
from ifonly.search.balls.trees import Balls

__all__ = ["Balls", "LinearBalls", "NetworkBalls"]
