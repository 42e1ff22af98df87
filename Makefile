# make reproduce   measure this machine and write the paper (results/<device>/paper.pdf)
# make test        run the tests
# make test-amd    hold the kernels' AMD machine code against what they state; needs no GPU
# make wheel-rocm  a wheel for AMD GPUs
# Each sets up what it needs first; see README.md.

CONFIG ?= config/experiment.yaml
export PATH := $(CURDIR)/.venv/bin:$(PATH)

.PHONY: reproduce smoke test test-amd wheel-rocm lint format lock sbom setup reference clean distclean

# One run at a time: flock does what Snakemake's own lock does, and lets go when a run is killed.
reproduce:
	@scripts/setup --tex
	@flock --nonblock --conflict-exit-code 75 .snakemake.lock \
	  snakemake --nolock --configfile $(CONFIG) || { status=$$?; [ $$status != 75 ] || \
	  echo "another run is in progress in this folder; wait for it to end" >&2; exit $$status; }

smoke:
	@$(MAKE) --no-print-directory reproduce CONFIG=config/smoke.yaml

test: setup
	@python -m pytest

# Every kernel for every AMD arch, by each compiler at hand; the extension and its wheel with each.
test-amd: setup
	@PYTHONPATH=src scripts/test-amd

# A wheel for the archs of PYTORCH_ROCM_ARCH, default: all that the compiler knows; into dist/.
wheel-rocm: setup
	@PYTHONPATH=src python -m experiment.wheel --out dist

setup:
	@scripts/setup

NATIVE = $(shell git ls-files 'src/**/*.h' 'src/**/*.hip' 'src/**/*.cpp' 'src/**/*.cu' 'tests/host/*')

lint: setup
	ruff check .
	ruff format --check .
	snakefmt --check Snakefile workflow
	snakemake --lint
	clang-format --dry-run --Werror $(NATIVE)
	hadolint $(shell git ls-files '*Dockerfile')

format: setup
	ruff check --fix .
	ruff format .
	snakefmt Snakefile workflow
	clang-format -i $(NATIVE)

# Keeps results/$(DEVICE) for the record, in reference/$(DEVICE), if they are whole and sound.
reference: setup
	@PYTHONPATH=src python -m experiment.pack --results results/$(or $(DEVICE),$(error \
	  say whose results: make reference DEVICE=name, one of the folders in results/))

# Writes requirements.txt anew from requirements.in; needs uv.
lock:
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-header \
	  --no-annotate requirements.in -o requirements.txt

# What .venv holds, as a CycloneDX SBOM and as the list of licences that is kept.
sbom: setup
	mkdir -p dist
	python -W ignore -m cyclonedx_py environment --pyproject pyproject.toml --output-reproducible \
	  --output-file dist/sbom.json .venv
	python scripts/licences dist/sbom.json docs/licences.md

clean:
	git clean -fdxq results
	rm -rf build .snakemake .snakemake.lock

# Everything that git ignores, .venv and .env too; what is new and not yet added stays.
distclean:
	git clean -fdXq
