"""Checks of dist/: sizes, tags, the source archive, and the library from an installed wheel in an empty environment.

python tools/wheels.py check    sizes, tags, metadata; abi3audit of wheels for the stable ABI
python tools/wheels.py test     install the wheel of this Python into a new environment, outside the source tree
"""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
MOST = 6_000_000  # bytes of a wheel
GLIBC = (
    2,
    27,
)  # the oldest that a wheel must run with: scikit-learn's wheels need it (native/portable/old_glibc.cmake)
# What installing the library must not bring: compilers, tensors, clusters, servers.
UNWANTED = (
    "torch",
    "dask",
    "distributed",
    "cmake",
    "ninja",
    "nanobind",
    "scikit-build-core",
    "flask",
    "uvicorn",
    "tornado",
)


def run(*command: str | Path, **options: object) -> None:
    print("$", *command, flush=True)
    subprocess.run([str(part) for part in command], check=True, **options)  # type: ignore[call-overload]


def wheels() -> list[Path]:
    found = sorted(DIST.glob("hinge_learn-*.whl"))
    if not found:
        raise SystemExit("dist/ has no wheels: make wheels")
    return found


def check() -> None:
    """Every file in dist."""
    for path in wheels():
        size = path.stat().st_size
        names = zipfile.ZipFile(path).namelist()
        strange = [name for name in names if not name.startswith(("hinge/", "hinge_learn/", "hinge_learn-"))]
        print(f"{path.name}: {size / 1e6:.2f} MB, {len(names)} files")
        assert size < MOST, f"{path.name} is larger than {MOST / 1e6:.0f} MB"
        assert not strange, f"{path.name} holds {strange[:5]}"
        for version in re.findall(r"manylinux_(\d+)_(\d+)", path.name):
            needed = tuple(map(int, version))
            assert needed <= GLIBC, f"{path.name} needs a newer glibc than {GLIBC}: see objdump -T of its module"
        assert "hinge/py.typed" in names
        if "abi3" in path.name:
            run(sys.executable, "-m", "abi3audit", "--strict", path)
    for path in DIST.glob("*.tar.gz"):
        with tarfile.open(path) as archive:
            names = {name.partition("/")[2] for name in archive.getnames()}
        for needed in (
            "CMakeLists.txt",
            "native/bind/module.cpp",
            "src/hinge/__init__.py",
            "tests/conftest.py",
            "LICENSE",
        ):
            assert needed in names, f"{path.name} has no {needed}"
        assert not [name for name in names if name.startswith(("build/", ".venv", "docs/_build"))]
        print(f"{path.name}: {path.stat().st_size / 1e6:.2f} MB, {len(names)} files")
    run(sys.executable, "-m", "twine", "check", "--strict", *DIST.iterdir())


def test() -> None:
    """Install into an empty environment, fit from the command, run the self-test."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        venv.create(place / "venv", with_pip=True)
        python = place / "venv" / "bin" / "python"
        pip = (python, "-m", "pip", "install", "-q", "--disable-pip-version-check")
        run(*pip, "--no-index", "--find-links", DIST, "--no-deps", "--only-binary", ":all:", "hinge-learn")
        [wheel] = {path for path in wheels() if _installed(python, path)}
        run(*pip, f"{wheel}[cli]")
        listed = subprocess.run(
            [python, "-m", "pip", "list", "--format=freeze"], capture_output=True, text=True, check=True
        )
        brought = {line.partition("==")[0].lower() for line in listed.stdout.splitlines()}
        assert not brought & set(UNWANTED), f"installing brings {sorted(brought & set(UNWANTED))}"
        run(python.parent / "hinge", "fit", "heart", "--time", "12", "--out", place / "out", cwd=place)
        assert (place / "out" / "report.html").exists()
        run(python, "-m", "hinge.selftest", cwd=place)


def _installed(python: Path, wheel: Path) -> bool:
    """Whether this is the wheel that pip chose: the one whose compiled module is there."""
    code = "import importlib.util; print(importlib.util.find_spec('hinge._core').origin)"
    answer = subprocess.run(
        [python, "-S", "-c", f"import site, sys; site.main(); {code}"], capture_output=True, text=True
    )
    module = Path(answer.stdout.strip()).name
    return f"hinge/{module}" in zipfile.ZipFile(wheel).namelist()


if __name__ == "__main__":
    {"check": check, "test": test}[sys.argv[1]]()
