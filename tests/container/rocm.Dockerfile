# Stands in for a ROCm PyTorch image, Python in /opt/venv as there. hipcc is Debian's; torch is the
# build without a GPU, changed where its extension builder looks: hipify, hipcc and the linker then
# do their real work, and only the kernels cannot run.
FROM debian:bookworm-slim

RUN apt-get update \
 && apt-get install -y --no-install-recommends g++ hipcc libamdhip64-dev python3-venv \
 && rm -rf /var/lib/apt/lists/*
RUN python3 -m venv /opt/venv && /opt/venv/bin/pip install --no-cache-dir torch==2.13.0
RUN cd /opt/venv/lib/python3.11/site-packages/torch \
 && sed -i "s/^hip.*/hip = '5.2.3'/" version.py \
 && echo '_is_compiled = lambda: True' >>cuda/__init__.py \
 && for name in c10_hip torch_hip; do g++ -shared -x c++ /dev/null -o lib/lib$name.so; done

# The architectures that the base names must give way to the build's argument.
ENV HIP_PLATFORM=amd ROCM_HOME=/usr PYTORCH_ROCM_ARCH=gfx000
