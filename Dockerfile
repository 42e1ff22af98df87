# One file for every device: the base image brings torch and the compiler of its GPU, or neither.
# docker-compose.yml names the three bases in use.
#
#   docker build -t online-softmax .                       AMD GPUs
#   docker build -t online-softmax --build-arg BASE_IMAGE=debian:bookworm-slim \
#     --build-arg BACKEND=cpu .                            no GPU
#
# A layer for each reason to build anew: system packages, Python packages, native code, the rest.
ARG BASE_IMAGE=rocm/pytorch:rocm7.14_ubuntu24.04_py3.12_pytorch_release_2.12.0@sha256:c38eeda81d85f00fbe35d3d50ce42ce59c524e87d810624f4eb5c52fddb3b9ad
FROM ${BASE_IMAGE}

USER 0
WORKDIR /app

RUN apt-get update \
 && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
      g++ python3-venv tini \
      latexmk texlive-latex-base texlive-latex-recommended texlive-latex-extra \
      texlive-fonts-recommended \
 && rm -rf /var/lib/apt/lists/* /var/log/*

# The packages get an environment of their own. It sees those of the base, wherever the base keeps
# its Python, and replaces none of them: torch least of all.
COPY requirements.txt requirements-torch.txt ./
RUN for python in python3 /opt/venv/bin/python3 /opt/conda/bin/python3; do \
      if "$python" -c 'import torch' 2>/dev/null; then base=$python; break; fi; \
    done \
 && "${base:-python3}" -m venv /opt/online-softmax \
 && if [ -n "${base:-}" ]; then \
      "$base" -c 'import sys; [print(f"import site; site.addsitedir({path!r})") for path in sys.path if path.endswith("-packages")]' \
        >"$(echo /opt/online-softmax/lib/python3*/site-packages)/base.pth"; \
    fi \
 && /opt/online-softmax/bin/pip install --no-cache-dir --require-hashes --no-deps \
      -r requirements.txt
ENV PATH=/opt/online-softmax/bin:${PATH}
ARG PIP_EXTRA_INDEX_URL
RUN python -c 'import torch' 2>/dev/null \
 || pip install --no-cache-dir -r requirements-torch.txt

# Named unlike the variables that they set: a variable of the base would hide an argument.
ARG BACKEND=rocm
ARG ROCM_ARCH="gfx90a;gfx942;gfx950;gfx1030;gfx1100;gfx1151;gfx1200;gfx1201"
ARG CUDA_ARCH="8.0;8.6;8.9;9.0;10.0;12.0+PTX"
ENV ONLINE_SOFTMAX_BACKEND=${BACKEND} \
    PYTORCH_ROCM_ARCH=${ROCM_ARCH} \
    TORCH_CUDA_ARCH_LIST=${CUDA_ARCH}
COPY LICENSE pyproject.toml setup.py ./
COPY src/online_softmax/csrc src/online_softmax/csrc
# The pipeline's own build step runs as any user, so it may write here; it finds the objects newer
# than their sources and only links them. Nothing below copies these sources again.
RUN umask 0000 && python setup.py build_ext --inplace && rm -rf build/lib.* \
 && chmod 0777 src/online_softmax

COPY Snakefile README.md ./
COPY config config
COPY paper paper
COPY profiles profiles
COPY reference reference
COPY workflow workflow
COPY tests tests
COPY scripts/container-entrypoint scripts/
COPY src/experiment src/experiment
COPY src/online_softmax/*.py src/online_softmax/

# Any user may run this, named in /etc/passwd or not. Snakemake's record lies among the results, so
# that one mounted folder keeps both.
ENV HOME=/home/online-softmax \
    USER=online-softmax \
    PYTHONPATH=/app/src \
    PYTHONDONTWRITEBYTECODE=1
RUN python -c 'import online_softmax as o; print(o.build_info())' \
 && mkdir -m 1777 "$HOME" results \
 && ln -s results/.snakemake .snakemake

ARG BASE_IMAGE
ARG COMMIT=unknown
ARG VERSION=0.1.0
ENV ONLINE_SOFTMAX_IMAGE=${BASE_IMAGE} \
    ONLINE_SOFTMAX_COMMIT=${COMMIT}
LABEL org.opencontainers.image.title="online-softmax" \
      org.opencontainers.image.description="Softmax on AMD and NVIDIA GPUs and on CPUs, and the experiment that measures it" \
      org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version=${VERSION} \
      org.opencontainers.image.revision=${COMMIT} \
      org.opencontainers.image.base.name=${BASE_IMAGE}

USER 1000:1000
# As Ctrl-C does: Snakemake ends its jobs, deletes what they left half written, and goes.
STOPSIGNAL SIGINT
ENTRYPOINT ["tini", "--", "/app/scripts/container-entrypoint"]
CMD ["snakemake"]
