"""Parcels: an object that is packed once, travels as bytes, and is opened once per worker."""

from __future__ import annotations

import pickle
import threading
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

__all__ = ["Parcel"]

# One opened parcel per thread of a worker: an explainer keeps tables and the last row it decoded, so no two threads
# share one. The state is the worker's own, and a worker has no other place for it than its module.
_opened = threading.local()


@dataclass(frozen=True)
class Parcel:
    """The bytes of an object, and a fingerprint of them.

    Examples
    --------
    >>> Parcel.of({"a": 1}).open()
    {'a': 1}
    """

    token: str
    data: bytes

    @classmethod
    def of(cls, content: Any) -> Parcel:
        """Return an object packed with cloudpickle, which also takes functions and classes of a notebook."""
        import cloudpickle  # noqa: PLC0415 - loaded only for batches

        data: bytes = cloudpickle.dumps(content, protocol=pickle.HIGHEST_PROTOCOL)
        return cls(sha256(data).hexdigest(), data)

    def open(self) -> Any:
        """Return the object; the same one as long as no other parcel is opened in this thread."""
        if getattr(_opened, "token", None) != self.token:
            _opened.content = pickle.loads(self.data)  # noqa: S301 - packed by the process that sent it
            _opened.token = self.token
        return _opened.content
