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
    norms
        The distances it takes.
    classes
        The most classes that it takes a model of.
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
    norms: frozenset[str] = frozenset({"l1"})
    classes: int = 2

    def refuses(self, kind: str, norm: str, classes: int) -> str:
        """Return the first thing about a problem that the peer does not take; nothing if it takes all."""
        if kind not in self.kinds:
            return f"{kind} model"
        if norm not in self.norms:
            return f"{norm} distance"
        return "" if classes <= self.classes else f"model of {classes} classes"

    @property
    def path(self) -> Path:
        """The worker script."""
        return Path(__file__).resolve().parent / self.script


_TREECF = Environment(
    "treecf", ("treecf==0.3.2",), ("3.12", "3.13", "3.11"), shared=("scikit-learn", "xgboost", "lightgbm", "catboost")
)
_TREECF_KINDS = frozenset({"forest", "boosting", "xgboost", "histgb", "catboost", "lightgbm"})
_OCEAN = Environment("oceanpy", ("oceanpy==2.0.7",), ("3.12", "3.13"))
_OCEAN_KINDS = frozenset({"forest", "xgboost"})
_VERITAS = Environment(
    "veritas", ("dtai-veritas==0.3.1",), ("3.12", "3.13", "3.11"), shared=("scikit-learn", "xgboost", "lightgbm")
)
_VERITAS_KINDS = frozenset({"forest", "boosting", "xgboost"})
_LARGEST = frozenset({"linf"})

PEERS: dict[str, Peer] = {
    "treecf": Peer(_TREECF, "serve_treecf.py", _TREECF_KINDS, keeps_time=True, options={"search": "refine"}),
    "treecf-classic": Peer(_TREECF, "serve_treecf.py", _TREECF_KINDS, keeps_time=True, options={"search": "classic"}),
    "oceanpy": Peer(_OCEAN, "serve_ocean.py", _OCEAN_KINDS, keeps_time=True, classes=10),
    "oceanpy-maxsat": Peer(_OCEAN, "serve_maxsat.py", _OCEAN_KINDS, keeps_time=False, classes=10),
    "veritas": Peer(
        _VERITAS, "serve_veritas.py", _VERITAS_KINDS, keeps_time=True, options={"steps": "10"}, norms=_LARGEST
    ),
    "veritas-close": Peer(
        _VERITAS, "serve_veritas.py", _VERITAS_KINDS, keeps_time=True, options={"steps": "40"}, norms=_LARGEST
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
