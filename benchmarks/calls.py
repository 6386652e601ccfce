"""Calls of a model: how often it is asked, and what that takes of the time of an answer."""

from __future__ import annotations

import time
from typing import Any

__all__ = ["Calls"]

_ASKED = ("predict", "predict_proba", "decision_function")


class Calls:
    """Calls of a model: how many, and the seconds spent in them, by the clock and by the processor."""

    def __init__(self, model: Any) -> None:
        self.count, self.seconds, self.cpu = 0, 0.0, 0.0
        self._inside, self._model = False, model
        for name in _ASKED:
            if hasattr(model, name):
                setattr(model, name, self._counted(getattr(model, name)))

    def _counted(self, method: Any) -> Any:
        def call(*args: Any, **options: Any) -> Any:
            if self._inside:  # a forest's predict asks for its own probabilities
                return method(*args, **options)
            began, worked = time.perf_counter(), time.process_time()
            self._inside = True
            try:
                return method(*args, **options)
            finally:
                self._inside = False
                self.count += 1
                self.seconds += time.perf_counter() - began
                self.cpu += time.process_time() - worked

        return call

    def reset(self) -> None:
        """Begin anew."""
        self.count, self.seconds, self.cpu = 0, 0.0, 0.0

    def end(self) -> None:
        """Give the model its own methods back, so that it can be pickled for others."""
        for name in _ASKED:
            vars(self._model).pop(name, None)
