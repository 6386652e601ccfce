"""Store of the larger data sets: the user's folder first, their public home once."""

from __future__ import annotations

import os
from pathlib import Path

from ifonly.errors import IfOnlyError

__all__ = ["FOLDER_VARIABLE", "DatasetMissing", "data_folder", "locate"]

FOLDER_VARIABLE = "IFONLY_DATA"

# The data repository of the CARLA library (Pawelczyk et al. 2021). Its history holds several draws of the
# train/test split under the same file names; the checksums are those of the draw that the paper used.
PUBLIC_HOME = "https://raw.githubusercontent.com/carla-recourse/cf-data/main/"
SHA256 = {
    "adult_train.csv": "949236c2502a3daa4b660ba35093ee133e1d152f865a5323768b0b7a50a8e292",
    "adult_test.csv": "5fa0554e72173473f4f826ed28daec5f2ce76c3af7a9f1cb6fe3a806f87b6b6b",
    "compas_train.csv": "d9cab073348a902bc09e4e0792f2b73aab1c6e419db1da655bbad978f33b80cf",
    "compas_test.csv": "6849f34e0edad380bfa3b62c5a947bd0a9122cc639496e3048f04c6c674127eb",
    "give_me_some_credit_train.csv": "bbed6dae0ae76625a2b181f3b95ac0980dfe2d55aca52a1ba991af350d87095f",
    "give_me_some_credit_test.csv": "3654b651e0bc5ce46c7ef3f807974a6e91c6669c8f5f0b5348556179d1f6df5e",
    "heloc_train.csv": "92187da9daab7d1b074192d45d29fd3c1aca1f3cac8f37800780310ea7cf2b36",
    "heloc_test.csv": "56a00b4f7b96bf1020a8d05d3b61ea3a4bc6fe637376c0b929dceb3f319a0e58",
}


class DatasetMissing(IfOnlyError, FileNotFoundError):
    """A data file is neither in the data folder nor to be had from its public home."""


def data_folder() -> Path:
    """Return the folder named by ``IFONLY_DATA``, or else ifonly's folder in the user's cache."""
    named = os.environ.get(FOLDER_VARIABLE)
    if named:
        return Path(named).expanduser()
    import pooch  # noqa: PLC0415 - loaded only when something is fetched

    return Path(pooch.os_cache("ifonly"))


def locate(file: str) -> Path:
    """Return the path of a data file, downloading it into the data folder when it is not there yet.

    A file that is already there is the user's own and is taken as it is; a downloaded one must have the known
    checksum.

    Raises
    ------
    DatasetMissing
        When the file is not there and cannot be fetched.
    """
    path = data_folder() / file
    return path if path.is_file() else _fetch(file, path.parent)


def _fetch(file: str, folder: Path) -> Path:
    import pooch  # noqa: PLC0415 - loaded only when something is fetched

    url = PUBLIC_HOME + file
    try:
        return Path(pooch.retrieve(url, known_hash=f"sha256:{SHA256[file]}", fname=file, path=folder))
    except OSError as error:
        reason = f"the download from {url} failed ({type(error).__name__}: {error})"
        cause: Exception = error
        # A refusal by the server arrives as an error that still holds the open connection.
        response = getattr(error, "response", None)
        if response is not None:
            response.close()
    except ValueError as error:
        reason = f"what {url} serves is another file (its sha256 is not {SHA256[file]}) and was discarded"
        cause = error
    raise DatasetMissing(
        f"Data file {file!r} not found: it is not in {folder}, and {reason}. Put {file} into that folder, or set "
        f"the environment variable {FOLDER_VARIABLE} to the folder that holds it."
    ) from cause
