# SPDX-License-Identifier: Apache-2.0
# The tasks of a developer and of a stranger; `make` or `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

JOBS ?= $(shell nproc)
PRESET ?= release
BUILD := build/$(PRESET)
DEMO_TASK ?= tasks/softmax.py
DEMO_EVALUATIONS ?= 24
FUZZ_SECONDS ?= 30
# CMake does not look at a changed tool list by itself; the cache file says that it has run.
CONFIGURED := $(BUILD)/build.ninja

.PHONY: help
help:  ## list what make can do
	@echo "cutegen: a faster CUDA kernel for a PyTorch module, checked against float64 truth."
	@echo
	@echo "  make demo    set up, build, and find a softmax kernel on a simulated H200"
	@echo "  $(BUILD)/bin/cutegen optimize FILE     the same for your own module"
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "Variables: JOBS=$(JOBS) PRESET=$(PRESET) (release, dev, asan, tsan) DEMO_TASK=$(DEMO_TASK) DEMO_EVALUATIONS=$(DEMO_EVALUATIONS)"

.PHONY: setup
setup:  ## install what is needed: apt packages, .venv with torch, CuTe headers and NVRTC
	@tools/setup.sh

# The compiler needs no package of Python, so pip runs beside it.
.PHONY: system-packages python-packages
system-packages:
	@tools/setup.sh --system
python-packages:
	@tools/setup.sh --python

.PHONY: setup-dev
setup-dev:  ## the same and what checks, fuzzing and benchmarks need (clang 19, mypy, Sphinx)
	@tools/setup.sh --dev

$(CONFIGURED):
	cmake --preset $(PRESET)

.PHONY: build
build: $(CONFIGURED)  ## build everything into build/PRESET (run make setup once before)
	cmake --build --preset $(PRESET) -j $(JOBS)

.PHONY: programs
programs: $(CONFIGURED)  ## build the programs without the tests
	cmake --build --preset $(PRESET) -j $(JOBS) --target programs

.PHONY: demo
demo: system-packages  ## set up, build, optimize one task on the simulator and write build/demo
	@$(MAKE) --no-print-directory -j 2 python-packages programs
	$(BUILD)/bin/cutegen optimize $(DEMO_TASK) --device sim:h200 --model builtin \
	    --evaluations $(DEMO_EVALUATIONS) --out build/demo

.PHONY: bundle
bundle: setup  ## pack build/bundle/cutegen: one folder that runs on any Linux with Python and torch
	@$(MAKE) --no-print-directory programs
	/usr/bin/env python3 tools/bundle.py --bin $(BUILD)/bin

.PHONY: test
test: system-packages  ## set up, build, run every test
	@$(MAKE) --no-print-directory -j 2 python-packages build
	ctest --test-dir $(BUILD) --output-on-failure --no-label-summary -j $(JOBS)

.PHONY: unit
unit: $(CONFIGURED)  ## the fast tests only
	cmake --build --preset $(PRESET) -j $(JOBS)
	ctest --test-dir $(BUILD) --output-on-failure --no-label-summary -j $(JOBS) -L unit

.PHONY: check
check:  ## formatting, floors, figures, text rules, documentation, types, clang-tidy on what changed
	tools/check_format.sh
	/usr/bin/env python3 tools/check_floors.py
	/usr/bin/env python3 tools/check_kinds.py
	/usr/bin/env python3 tools/check_text.py
	/usr/bin/env python3 tools/check_docs.py
	@$(MAKE) --no-print-directory docs
	tools/check_types.sh
	/usr/bin/env python3 tools/figures.py --build $(BUILD)
	tools/tidy.sh

.PHONY: check-all
check-all: check asan tsan fuzz  ## check, then the full sanitizer sets and a fuzz smoke

.PHONY: asan
asan:  ## unit tests under address and undefined behaviour sanitizers
	tools/sanitize.sh asan --all

.PHONY: tsan
tsan:  ## unit tests under the thread sanitizer
	tools/sanitize.sh tsan --all

.PHONY: fuzz
fuzz:  ## fuzz each parser for FUZZ_SECONDS
	tools/fuzz.sh $(FUZZ_SECONDS)

.PHONY: bench
bench: setup-dev  ## build and run bench/
	cmake --preset release -DCUTEGEN_BENCH=ON
	cmake --build --preset release -j $(JOBS)
	@for program in build/release/bench/*_bench; do echo "== $$program"; "$$program"; done

# Sphinx reads pages of the whole tree, so docs/conf.py lies apart from the source folder.
.PHONY: docs
docs:  ## build the documentation into build/docs; a warning is an error
	@tools/setup.sh --docs
	.venv/bin/python -m sphinx --quiet --fail-on-warning --keep-going --fresh-env --write-all \
	  --conf-dir docs --builder html . build/docs
	@echo "docs: open build/docs/index.html"

.PHONY: reference
reference: programs  ## write docs/reference from the built program, its tables and the schema
	/usr/bin/env python3 tools/reference.py --bin $(BUILD)/bin

.PHONY: format
format:  ## rewrite C++ sources as .clang-format says
	tools/check_format.sh --fix

.PHONY: clean
clean:  ## remove build/ (the venv and caches stay)
	rm -rf build
