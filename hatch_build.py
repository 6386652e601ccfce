"""Build hook: compiles the optional kernels of the searches. Whatever fails, the package is built without them.

``python hatch_build.py`` builds them in place, for people who work on a checkout; ``IFONLY_NO_KERNEL=1`` leaves them out.
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
_PACKAGE = Path("src/ifonly")
_KERNELS = {
    "_kernel": "search/cells",
    "_balls": "search/balls",
    "_signs": "models/forms",
}  # and the folders they are in
# Sums must be added up as written, so that the kernel and its NumPy twin agree to the last bit.
_FLAGS = {"unix": ["-O3", "-g0", "-std=c11", "-ffp-contract=off"], "msvc": ["/O2", "/fp:precise"]}


def compiled(folder: Path) -> list[Path]:
    """Return the paths of the kernels, compiled into a folder; raises whatever goes wrong."""
    from setuptools import Distribution, Extension
    from setuptools.command.build_ext import build_ext

    class Build(build_ext):
        def build_extensions(self) -> None:
            for extension in self.extensions:
                extension.extra_compile_args = _FLAGS.get(self.compiler.compiler_type, [])
            super().build_extensions()

    modules = {
        f"ifonly.{folder.replace('/', '.')}.{name}": str(_ROOT / _PACKAGE / folder / f"{name}.c")
        for name, folder in _KERNELS.items()
    }
    macros: list[tuple[str, str | None]] = [("Py_LIMITED_API", "0x030B0000")]
    extensions = [Extension(m, [source], py_limited_api=True, define_macros=macros) for m, source in modules.items()]
    command = Build(Distribution({"name": "ifonly", "ext_modules": extensions}))
    command.build_lib, command.build_temp = str(folder / "lib"), str(folder / "temp")
    command.ensure_finalized()
    command.run()
    return [Path(command.get_ext_fullpath(module)) for module in modules]


def in_place(folder: Path) -> list[Path]:
    """Compile the kernels and put them beside their sources."""
    targets = []
    for built in compiled(folder):
        target = _ROOT / _PACKAGE / _folder(built) / built.name
        # A process may have the old one open: put the new one in its place rather than write over it.
        shutil.copy2(built, target.with_name(f"{built.name}.new"))
        target.with_name(f"{built.name}.new").replace(target)
        targets.append(target)
    return targets


def _folder(built: Path) -> str:
    """Return the folder of a compiled kernel within the package."""
    return _KERNELS[built.name.split(".", maxsplit=1)[0]]


def _old() -> list[Path]:
    folders = ((name, _ROOT / _PACKAGE / folder) for name, folder in _KERNELS.items())
    return [p for name, folder in folders for end in ("so", "pyd") for p in folder.glob(f"{name}*.{end}")]


class KernelHook(BuildHookInterface[Any]):
    """Compile the kernels for a wheel, or beside their sources for an editable install."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile; a build without a compiler goes on without the kernels."""
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
            self.app.display_warning(f"ifonly is built without its compiled kernels, NumPy serves: {error}")
            return
        if editable:
            return
        for path in built:
            build_data["force_include"][str(path)] = f"ifonly/{_folder(path)}/{path.name}"
        build_data["pure_python"] = False
        build_data["tag"] = self._tag(built)

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002 - hatchling's
        """Remove what was only needed for the build."""
        shutil.rmtree(self.folder, ignore_errors=True)

    @staticmethod
    def _tag(built: list[Path]) -> str:
        """Return the tag of the wheel: any Python from 3.11 on, where the file says that it serves them all."""
        from packaging.tags import sys_tags

        platform = next(sys_tags())
        if all(".abi3." in p.name or (os.name == "nt" and p.name in {f"{k}.pyd" for k in _KERNELS}) for p in built):
            return f"cp311-abi3-{platform.platform}"
        return str(platform)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        for path in in_place(Path(scratch)):
            sys.stdout.write(f"{path.relative_to(_ROOT)}\n")
