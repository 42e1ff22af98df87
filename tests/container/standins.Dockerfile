# Stand-ins for PyTorch's images for GPUs: the compiler is real, torch is a build without a GPU that
# poses as one for it. The architectures that a base names must give way to the build's argument.

# HIP 5.2, with Python in /opt/venv as in AMD's images.
FROM debian:bookworm-slim AS rocm5
RUN apt-get update \
 && apt-get install -y --no-install-recommends g++ hipcc libamdhip64-dev python3-venv \
 && rm -rf /var/lib/apt/lists/*
RUN python3 -m venv /opt/venv && /opt/venv/bin/pip install --no-cache-dir torch==2.13.0
COPY pose.py /opt/
RUN /opt/venv/bin/python3 /opt/pose.py hip 5.2.3
ENV HIP_PLATFORM=amd ROCM_HOME=/usr PYTORCH_ROCM_ARCH=gfx000

# hipcc 7 and clang 21, with the system's Python and Debian's own torch.
FROM debian:forky-slim AS rocm7
RUN apt-get update \
 && apt-get install -y --no-install-recommends \
      g++ hipcc libamdhip64-dev libtorch-dev python3-torch python3-venv rocm-device-libs-21 \
 && rm -rf /var/lib/apt/lists/*
COPY pose.py /opt/
RUN python3 /opt/pose.py hip 6.4.3
ENV HIP_PLATFORM=amd ROCM_HOME=/usr PYTORCH_ROCM_ARCH=gfx000

# CUDA 13.0: NVIDIA's own compiler, from its Python packages.
FROM debian:bookworm-slim AS cuda13
RUN apt-get update \
 && apt-get install -y --no-install-recommends g++ python3-venv \
 && rm -rf /var/lib/apt/lists/*
RUN python3 -m venv /opt/venv \
 && /opt/venv/bin/pip install --no-cache-dir torch==2.13.0 nvidia-cuda-cccl==13.0.85 \
      nvidia-cuda-crt==13.0.88 nvidia-cuda-nvcc==13.0.88 nvidia-cuda-runtime==13.0.96 \
      nvidia-nvvm==13.0.88
COPY pose.py /opt/
ENV CUDA_HOME=/opt/venv/lib/python3.11/site-packages/nvidia/cu13 TORCH_CUDA_ARCH_LIST=5.0
RUN /opt/venv/bin/python3 /opt/pose.py cuda 13.0 \
 && ln -s lib "$CUDA_HOME/lib64" && ln -s libcudart.so.13 "$CUDA_HOME/lib/libcudart.so"
