"""Makes this Python's torch look like a ROCm build to its extension builder: pose_as_rocm.py HIP

hipify, hipcc and the linker then do their real work, and only the kernels cannot run.
"""

import re
import subprocess
import sys
from pathlib import Path

import torch

folder = Path(torch.__file__).parent
version = folder / "version.py"
version.write_text(
    re.sub(r"^hip\b.*", f"hip = {sys.argv[1]!r}", version.read_text(), flags=re.MULTILINE)
)
with (folder / "cuda/__init__.py").open("a") as text:
    text.write("_is_compiled = lambda: True\nis_available = lambda: False\n")
for name in ("c10_hip", "torch_hip"):
    library = folder / f"lib/lib{name}.so"
    subprocess.run(["g++", "-shared", "-x", "c++", "/dev/null", "-o", library], check=True)
