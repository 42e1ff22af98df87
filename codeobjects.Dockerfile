# ROCm 7's hipcc, which Debian packages, compiles every kernel for every AMD architecture; what reads
# the machine code needs neither torch nor a GPU. The packages are those of scripts/rocm7-rootfs.
#
#   docker compose run --rm codeobjects
FROM debian:forky-slim

RUN apt-get update \
 && apt-get install -y --no-install-recommends \
      hipcc libamdhip64-dev llvm-21 python3-networkx python3-pandas python3-yaml \
      rocm-device-libs-21 tini \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /app
COPY workflow/schemas workflow/schemas
COPY scripts/container-entrypoint scripts/
COPY src src
RUN mkdir -m 1777 .cache results
ENV ONLINE_SOFTMAX_BACKEND=cpu \
    PYTHONPATH=/app/src \
    PYTHONDONTWRITEBYTECODE=1
USER 1000:1000
ENTRYPOINT ["tini", "--", "/app/scripts/container-entrypoint"]
CMD ["python3", "-m", "experiment.codeobjects", "--gate", "--out", "results/codeobjects.csv"]
