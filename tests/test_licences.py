"""The list of licences is that of the lock file, and no package is without one."""

import json
import re
import runpy
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
LICENCES = ROOT / "docs/licences.md"
pytestmark = pytest.mark.skipif(not LICENCES.exists(), reason="an image holds no docs")


def run(tmp_path, *components):
    """What scripts/licences makes of these components of an SBOM: {package: licence}."""
    sbom, out = tmp_path / "sbom.json", tmp_path / "licences.md"
    sbom.write_text(json.dumps({"components": components}))
    runpy.run_path(str(ROOT / "scripts/licences"))["main"](sbom, out)
    return table(out)


def table(path):
    return dict(re.findall(r"^\| (\S+) \| (.+) \|$", path.read_text(), re.MULTILINE)[1:])


def test_the_list_is_that_of_the_lock_on_linux():
    lines = re.findall(r"^(\w.*?) *\\$", (ROOT / "requirements.txt").read_text(), re.MULTILINE)
    linux = {"sys_platform": "linux", "platform_machine": "x86_64"}
    locked = {
        canonicalize_name(pin.name)
        for pin in map(Requirement, lines)
        if not pin.marker or pin.marker.evaluate(linux)
    }
    listed = {canonicalize_name(name) for name in table(LICENCES)}
    assert listed - {"pip", "torch"} == locked, "the lock has changed: make sbom"


def test_an_expression_comes_before_free_text(tmp_path):
    free = {"license": {"name": "License :: OSI Approved :: BSD License"}}
    rows = run(
        tmp_path,
        {"name": "One", "licenses": [free, {"license": {"id": "BSD-3-Clause"}}]},
        {"name": "two", "licenses": [{"expression": "MIT AND Zlib"}]},
        {"name": "three", "licenses": [free]},
    )
    assert rows == {"one": "BSD-3-Clause", "three": "BSD License", "two": "MIT AND Zlib"}


def test_what_declares_nothing_is_named_by_its_file_or_refused(tmp_path, monkeypatch):
    folder = tmp_path / "quiet-1.dist-info"
    (folder / "licenses").mkdir(parents=True)
    (folder / "METADATA").write_text("Name: quiet\nVersion: 1\n")
    (folder / "RECORD").write_text("quiet-1.dist-info/licenses/LICENSE,,\n")
    (folder / "licenses/LICENSE").write_text("\nISC License\n\nPermission\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert run(tmp_path, {"name": "quiet"}) == {"quiet": "ISC License"}
    (folder / "RECORD").write_text("")
    (tmp_path / "licences.md").unlink()
    with pytest.raises(SystemExit, match="quiet declares no licence and ships no licence file"):
        run(tmp_path, {"name": "quiet"})
    assert not (tmp_path / "licences.md").exists()
