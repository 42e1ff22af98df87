"""Finds and loads the compiled library; one that cannot work here is refused in a sentence."""

import json
import warnings
from pathlib import Path

import torch

PACKAGE = Path(__file__).parent
BUILD = "build it here with: pip install --no-build-isolation --force-reinstall --no-deps ."


def load(package: Path = PACKAGE) -> Path:
    """Register torch.ops.online_softmax and return the library's path. Raises ImportError."""
    if not hasattr(torch.Stream, "native_handle"):
        raise ImportError(f"online_softmax needs torch >= 2.11; this is torch {torch.__version__}")
    library = next(package.glob("_C*.so"), None)
    if library is None or not (package / "build.json").exists():
        raise ImportError("online_softmax is not built; run: pip install --no-build-isolation -e .")
    built = facts(package)
    if release(built["torch"]) != release(torch.__version__):
        raise ImportError(
            f"online_softmax was built with torch {built['torch']}; this is torch"
            f" {torch.__version__}: install torch {release(built['torch'])}, or {BUILD}"
        )
    try:
        torch.ops.load_library(library)
    except OSError as error:
        wanted = f"torch {built['torch']}"
        if built.get("hip"):
            wanted += f" built for ROCm, and the HIP runtime of {built['hip']} (libamdhip64)"
        raise ImportError(
            f"online_softmax needs {wanted}, and did not load beside torch {torch.__version__}"
            f" ({error.__cause__ or error}): install those, or {BUILD}"
        ) from None
    if built.get("evidence"):
        warnings.warn(
            "this online_softmax was built without a ROCm torch, as evidence that it builds;"
            f" {BUILD}",
            stacklevel=2,
        )
    return library


def facts(package: Path = PACKAGE) -> dict:
    """What setup.py wrote down."""
    return json.loads((package / "build.json").read_text())


def release(version: str) -> str:
    """2.13 of 2.13.0+rocm7.1: within it torch's C++ interface stays."""
    return ".".join(version.split(".")[:2])
