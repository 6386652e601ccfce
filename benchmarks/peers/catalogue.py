"""Catalogue of peers: the models each can explain, and the environment in which it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.peers.environments import Environment

__all__ = ["PEERS", "Peer"]

_ANY_MODEL = frozenset({"forest", "boosting", "xgboost", "tree", "linear", "network"})
_DICE = Environment("dice", ("dice-ml==0.12",), ("3.12", "3.13", "3.11"))


@dataclass(frozen=True)
class Peer:
    """One explainer behind a worker script.

    Attributes
    ----------
    script
        The worker, next to this file.
    kinds
        The kinds of model it takes.
    keeps_time
        Whether it has a time limit of its own; otherwise its worker is ended at the limit.
    options
        What the worker is told beside the task.
    """

    environment: Environment
    script: str
    kinds: frozenset[str]
    keeps_time: bool
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        """The worker script."""
        return Path(__file__).resolve().parent / self.script


PEERS: dict[str, Peer] = {
    "treecf": Peer(
        Environment("treecf", ("treecf==0.3.2",), ("3.12", "3.13", "3.11")),
        "serve_treecf.py",
        frozenset({"forest", "boosting", "xgboost"}),
        keeps_time=True,
    ),
    "oceanpy": Peer(
        Environment("oceanpy", ("oceanpy==2.0.7",), ("3.12", "3.13")),
        "serve_ocean.py",
        frozenset({"forest", "xgboost"}),
        keeps_time=True,
    ),
    "dice-random": Peer(_DICE, "serve_dice.py", _ANY_MODEL, keeps_time=False, options={"method": "random"}),
    "dice-genetic": Peer(_DICE, "serve_dice.py", _ANY_MODEL, keeps_time=False, options={"method": "genetic"}),
    "nice": Peer(
        # Its setup script needs pkg_resources, and its pins need a Python that NumPy 1 and pandas 1 have wheels for.
        Environment("nice", ("NICEx==0.2.3", "scipy"), ("3.11", "3.10"), tools=("setuptools<80", "wheel")),
        "serve_nice.py",
        _ANY_MODEL,
        keeps_time=False,
    ),
}
