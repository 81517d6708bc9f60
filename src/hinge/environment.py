"""The versions that a bug report needs."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
import sysconfig

DEPENDENCIES = ("numpy", "scipy", "scikit-learn", "narwhals", "threadpoolctl", "safetensors")
EXTRAS = ("polars", "pandas", "pyarrow", "matplotlib", "typer", "rich", "clarabel", "dask", "onnx")


def versions() -> dict[str, str]:
    """The versions of hinge, Python, the machine and the installed libraries, by name."""
    import hinge
    from hinge._native import num_threads

    free = " free-threaded" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
    found = {
        "hinge": f"{hinge.__version__} ({os.path.dirname(hinge.__file__ or '')})",
        "python": f"{platform.python_version()}{free} ({sys.executable})",
        "machine": f"{platform.platform()}, {platform.machine()}, {os.cpu_count()} processors",
        "threads": str(num_threads()),
    }
    for name in (*DEPENDENCIES, *EXTRAS):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "missing" if name in DEPENDENCIES else "not installed"
    for pool in _blas():
        found[f"blas ({pool['prefix']})"] = f"{pool['internal_api']} {pool['version']}, {pool['num_threads']} threads"
    return found


def _blas() -> list[dict[str, str]]:
    """The BLAS libraries of this process."""
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_info

    return [pool for pool in threadpool_info() if pool["user_api"] == "blas"]


def show_versions() -> None:
    """Print the versions of hinge, Python, the machine and the installed libraries, for a bug report.

    Examples
    --------
    >>> import hinge as hg
    >>> hg.show_versions()  # doctest: +ELLIPSIS
    hinge          0...
    """
    for name, version in versions().items():
        print(f"{name:<14s} {version}")
