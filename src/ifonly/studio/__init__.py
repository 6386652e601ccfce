"""The studio: ask, see and understand in a browser, on this machine.

It needs the extra ``ifonly[studio]``. ``ifonly studio`` opens it from the command line, ``explainer.studio()`` from Python.
The library knows nothing of it.
"""

from __future__ import annotations
