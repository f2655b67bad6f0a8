"""The build step of a wheel that brings its kernels along: it compiles the common ones for a processor that many have.

hatchling runs it where HATCH_BUILD_HOOK_ENABLE_CUSTOM=true (`make wheel`). Kernels depend on the versions of Python,
numba and llvmlite, so that the wheel is for one Python; with other versions its kernels are ignored, never wrong.
"""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class KernelBuildHook(BuildHookInterface):
    """Adds `condgrad/prebuilt_kernels/` to the wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile the kernels, before the files of the wheel are collected."""
        if version == "editable":
            return
        sys.path.insert(0, self.root)
        from condgrad.compiled.cache import BASELINES, MACHINE

        if MACHINE not in BASELINES:
            self.app.display_warning(f"No baseline is known for {MACHINE}: the wheel comes without kernels.")
            return
        name, features, _ = BASELINES[MACHINE]
        self._folder = tempfile.TemporaryDirectory()
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([self.root, *filter(None, [os.environ.get("PYTHONPATH")])]),
            "NUMBA_CACHE_DIR": self._folder.name,
            "NUMBA_CPU_NAME": name,
            "NUMBA_CPU_FEATURES": features,
            "NUMBA_DISABLE_INTEL_SVML": "1",
        }
        command = [sys.executable, "-m", "condgrad.cli", "warmup"]
        subprocess.run(command, cwd=self._folder.name, env=environment, check=True)
        for file in sorted(pathlib.Path(self._folder.name, "kernels").glob("*.kernel")):
            build_data["force_include"][str(file)] = f"condgrad/prebuilt_kernels/{file.name}"
        build_data["pure_python"] = False
        if sys.platform == "linux":
            # The kernels are machine code without a C library of their own: the wheel runs wherever numba's does.
            python = f"cp{sys.version_info.major}{sys.version_info.minor}"
            build_data["tag"] = f"{python}-{python}-manylinux_2_28_{MACHINE}"
        else:
            build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the folder in which the kernels were made."""
        if hasattr(self, "_folder"):
            self._folder.cleanup()
