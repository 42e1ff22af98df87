"""Makes this Python's torch look like one for a GPU to its extension builder: pose.py hip|cuda VERSION

The vendor's compiler and the linker then do their real work, and only the kernels cannot run.
"""

import re
import subprocess
import sys
from pathlib import Path

import torch

kind, version = sys.argv[1:]
folder = Path(torch.__file__).parent
facts = folder / "version.py"
facts.write_text(
    re.sub(rf"^{kind}\b.*", f"{kind} = {version!r}", facts.read_text(), flags=re.MULTILINE)
)
with (folder / "cuda/__init__.py").open("a") as text:
    text.write("_is_compiled = lambda: True\nis_available = lambda: False\n")
for name in (f"c10_{kind}", f"torch_{kind}"):
    library = folder / f"lib/lib{name}.so"
    subprocess.run(["g++", "-shared", "-x", "c++", "/dev/null", "-o", library], check=True)
