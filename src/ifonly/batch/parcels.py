"""Parcels: an object that is packed once, travels as bytes, and is opened once per worker."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from ifonly.runtime.memo import Memo

__all__ = ["Parcel"]

# The parcel that a worker process has open, for all of its threads. A task is a function of a module, so a worker has no
# other place than the module for what it keeps between tasks.
_OPENED = Memo(most=1)


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
        """Return the object; the same one as long as no other parcel is opened in this process."""
        unpacked: Any = _OPENED.get("parcel", self.token, lambda: pickle.loads(self.data))  # noqa: S301 - our own
        return unpacked
