# Stand-ins for a ROCm PyTorch image: hipcc is Debian's, torch a build without a GPU that poses as
# one for ROCm. The architectures that a base names must give way to the build's argument.

# HIP 5.2, with Python in /opt/venv as in AMD's images.
FROM debian:bookworm-slim AS rocm5
RUN apt-get update \
 && apt-get install -y --no-install-recommends g++ hipcc libamdhip64-dev python3-venv \
 && rm -rf /var/lib/apt/lists/*
RUN python3 -m venv /opt/venv && /opt/venv/bin/pip install --no-cache-dir torch==2.13.0
COPY pose_as_rocm.py /opt/
RUN /opt/venv/bin/python3 /opt/pose_as_rocm.py 5.2.3
ENV HIP_PLATFORM=amd ROCM_HOME=/usr PYTORCH_ROCM_ARCH=gfx000

# hipcc 7 and clang 21, with the system's Python and Debian's own torch.
FROM debian:forky-slim AS rocm7
RUN apt-get update \
 && apt-get install -y --no-install-recommends \
      g++ hipcc libamdhip64-dev libtorch-dev python3-torch python3-venv rocm-device-libs-21 \
 && rm -rf /var/lib/apt/lists/*
COPY pose_as_rocm.py /opt/
RUN python3 /opt/pose_as_rocm.py 6.4.3
ENV HIP_PLATFORM=amd ROCM_HOME=/usr PYTORCH_ROCM_ARCH=gfx000
