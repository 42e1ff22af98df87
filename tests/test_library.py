"""A library that cannot work here is refused in one sentence that says what to do."""

import json

import pytest
import torch

from online_softmax import library

HERE = torch.__version__


@pytest.fixture
def package(tmp_path):
    """package(**facts): a package folder whose library is no library, built with those facts."""

    def package(**facts):
        (tmp_path / "_C.so").write_text("no library")
        built = {"torch": HERE, "hip": None, "evidence": False} | facts
        (tmp_path / "build.json").write_text(json.dumps(built))
        return tmp_path

    return package


def refusal(folder):
    with pytest.raises(ImportError) as caught:
        library.load(folder)
    return str(caught.value)


def test_not_built(tmp_path):
    assert "is not built; run: pip install" in refusal(tmp_path)


def test_another_torch(package):
    said = refusal(package(torch="1.99.1+rocm7.0"))
    assert "built with torch 1.99.1+rocm7.0; this is torch " + HERE in said
    assert "install torch 1.99, or build it here" in said


def test_another_patch_release_is_no_other_torch(package):
    said = refusal(package(torch=library.release(HERE) + ".99"))
    assert "did not load" in said


def test_without_the_hip_runtime(package):
    said = refusal(package(hip="7.1.2"))
    assert f"needs torch {HERE} built for ROCm, and the HIP runtime of 7.1.2 (libamdhip64)" in said
    assert f"did not load beside torch {HERE}" in said


def test_evidence_is_said(package, monkeypatch):
    monkeypatch.setattr(torch.ops, "load_library", lambda path: None)
    with pytest.warns(UserWarning, match="built without a ROCm torch, as evidence"):
        library.load(package(evidence=True))
