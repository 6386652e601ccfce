"""Build hook: compiles the optional kernel of the cell search. Whatever fails, the package is built without it.

``python hatch_build.py`` builds it in place, for people who work on a checkout; ``IFONLY_NO_KERNEL=1`` leaves it out.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_ROOT = Path(__file__).resolve().parent
_PACKAGE = Path("src/ifonly/search")
_MODULE = "ifonly.search._kernel"
# Sums must be added up as written, so that the kernel and its NumPy twin agree to the last bit.
_FLAGS = {"unix": ["-O3", "-g0", "-std=c11", "-ffp-contract=off"], "msvc": ["/O2", "/fp:precise"]}


def compiled(folder: Path) -> Path:
    """Return the path of the kernel, compiled into a folder; raises whatever goes wrong."""
    from setuptools import Distribution, Extension
    from setuptools.command.build_ext import build_ext

    class Build(build_ext):
        def build_extensions(self) -> None:
            for extension in self.extensions:
                extension.extra_compile_args = _FLAGS.get(self.compiler.compiler_type, [])
            super().build_extensions()

    source = str(_ROOT / _PACKAGE / "_kernel.c")
    extension = Extension(_MODULE, [source], py_limited_api=True, define_macros=[("Py_LIMITED_API", "0x030B0000")])
    command = Build(Distribution({"name": "ifonly", "ext_modules": [extension]}))
    command.build_lib, command.build_temp = str(folder / "lib"), str(folder / "temp")
    command.ensure_finalized()
    command.run()
    return Path(command.get_ext_fullpath(_MODULE))


def in_place(folder: Path) -> Path:
    """Compile the kernel and put it beside its source."""
    built = compiled(folder)
    target = _ROOT / _PACKAGE / built.name
    # A process may have the old one open: put the new one in its place rather than write over it.
    shutil.copy2(built, target.with_name(f"{built.name}.new"))
    target.with_name(f"{built.name}.new").replace(target)
    return target


def _old() -> list[Path]:
    return [path for end in ("so", "pyd") for path in (_ROOT / _PACKAGE).glob(f"_kernel*.{end}")]


class KernelHook(BuildHookInterface[Any]):
    """Compile the kernel for a wheel, or beside its source for an editable install."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile; a build without a compiler goes on without the kernel."""
        self.folder = Path(tempfile.mkdtemp())
        editable = version == "editable"
        if os.environ.get("IFONLY_NO_KERNEL", "") not in {"", "0"}:
            if editable:
                for path in _old():
                    path.unlink()
            return
        try:
            built = in_place(self.folder) if editable else compiled(self.folder)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - it is optional: no compiler, no headers, a full disk
            self.app.display_warning(f"ifonly is built without its compiled kernel, NumPy serves: {error}")
            return
        if editable:
            return
        build_data["force_include"][str(built)] = f"ifonly/search/{built.name}"
        build_data["pure_python"] = False
        build_data["tag"] = self._tag(built)

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002 - hatchling's
        """Remove what was only needed for the build."""
        shutil.rmtree(self.folder, ignore_errors=True)

    @staticmethod
    def _tag(built: Path) -> str:
        """Return the tag of the wheel: any Python from 3.11 on, where the file says that it serves them all."""
        from packaging.tags import sys_tags

        platform = next(sys_tags())
        if ".abi3." in built.name or (os.name == "nt" and built.name == "_kernel.pyd"):
            return f"cp311-abi3-{platform.platform}"
        return str(platform)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        sys.stdout.write(f"{in_place(Path(scratch)).relative_to(_ROOT)}\n")
