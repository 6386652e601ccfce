"""Settings for all tests, some of which must be in place before NumPy is imported."""

import os
import signal
import threading

# The tests run side by side and their matrices are tiny: threads inside BLAS only get into each other's way.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

from hypothesis import HealthCheck, settings  # noqa: E402 - after the environment is set

from ifonly.solvers._loading import load_highspy  # noqa: E402 - likewise

# Some tests import highspy themselves, others a package that brings a libhighs of its own.
load_highspy()

# The same examples on every machine, and no opinion on how fast it is.
settings.register_profile(
    "ifonly", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("ifonly")


def pytest_configure() -> None:
    """Let Ctrl-C reach Python: a run started in the background of a shell inherits that it is ignored."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)
