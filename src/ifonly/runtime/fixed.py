"""Fixed mappings: those of values that are made ready once and shared, such as a criterion's weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NoReturn

__all__ = ["Fixed"]


class Fixed(dict[Any, Any]):
    """A copy of a mapping that does not change, whatever becomes of the original.

    Examples
    --------
    >>> weights = {"age": 2.0}
    >>> fixed = Fixed(weights)
    >>> weights["age"] = 5.0
    >>> fixed
    {'age': 2.0}
    """

    @classmethod
    def of(cls, mapping: Mapping[Any, Any]) -> Fixed:
        """Return the copy of a mapping, and of those that it holds."""
        return cls({key: cls.of(value) if isinstance(value, Mapping) else value for key, value in mapping.items()})

    def _refuse(self, *args: object, **options: object) -> NoReturn:
        del args, options
        raise TypeError(
            "The mappings of a criterion do not change, since answers are proven for them. Make another criterion, e.g. "
            "dataclasses.replace(criterion, weights={...})."
        )

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[type[Fixed], tuple[dict[Any, Any]]]:
        """Pickle and copy it as what it is a copy of: items cannot be put into it later."""
        return Fixed, (dict(self),)
