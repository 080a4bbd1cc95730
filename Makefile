# Every target does its own set-up; nothing needs to be installed by hand.
# Release builds only: the C++ shim takes a minute to build, and once is enough.

CARGO ?= cargo
BIN := target/release

# The frameworks that emit the data set's graphs; apart from everything else.
DATA_ENV := .dataset-env
DATA_PYTHON := $(DATA_ENV)/bin/python

# The Python package, with what its tests and examples need.
PYTHON_ENV := .python-env
PYTHON := $(PYTHON_ENV)/bin/python
ENGINE_DIR := $(abspath $(or $(XLA_GYM_ENGINE_DIR),.engine))

# The crates that need LLVM, which is not set up by default.
LLVM_CRATES := xla-gym-llvm-shim xla-gym-llvm-worker
WITHOUT_LLVM := $(addprefix --exclude ,$(LLVM_CRATES))
WITH_LLVM := $(addprefix -p ,$(LLVM_CRATES))

# Programs that cargo does not bring.
TOOLS := $(abspath .cargo-tools)
DENY_VERSION := 0.20.2
DENY := $(TOOLS)/$(DENY_VERSION)/bin/cargo-deny

.PHONY: help setup setup-llvm build-llvm test-llvm build demo test test-rust test-python test-data wheel data bench fmt clean \
        lint lint-format lint-python lint-dependencies lint-rust

help:
	@echo "make demo   set up, build, and compare a pass order with XLA's own on a GPT-2 step"
	@echo "make test   set up, check as 'make lint' does, build, and run all tests"
	@echo "make build  set up and build the xla-gym command ($(BIN)/xla-gym)"
	@echo "make wheel  build the Python package into dist"
	@echo "make data   rebuild the benchmark graphs and their manifests"
	@echo "make test-data  rebuild ten of them, picked at random, and compare"
	@echo "make bench  measure what the engine adds to the passes' own time"
	@echo "make fmt    format the code"
	@echo "make lint   check format, lints, types, and what is depended on"
	@echo "make setup-llvm  install LLVM 19 for the second compiler"
	@echo "make build-llvm  set it up and build its worker"
	@echo "make test-llvm   set it up, build its worker, and run its tests"
	@echo "make setup  fetch the XLA engine into .engine (or \$$XLA_GYM_ENGINE_DIR)"

setup:
	@python3 tools/setup.py

setup-llvm:
	@python3 tools/setup_llvm.py

build-llvm: setup-llvm
	$(CARGO) build --release --locked -p xla-gym-llvm-worker

# With XLA_GYM_SLOW=1, every program that a pass has changed is run as well.
test-llvm: setup-llvm
	$(CARGO) build --release --locked -p xla-gym $(WITH_LLVM) --all-targets
	$(CARGO) test --release --locked $(WITH_LLVM)

build: setup
	$(CARGO) build --release --locked -p xla-gym -p xla-gym-xla-worker -p xla-gym-toy-worker

demo: build
	@tools/demo.sh

test: lint test-rust test-python test-data

# All targets at once, or cargo would build the shim twice, with and without what only tests need.
test-rust: setup
	python3 -m unittest discover -s tools -p 'test_*.py'
	$(CARGO) build --release --locked --workspace $(WITHOUT_LLVM) --all-targets
	$(CARGO) test --release --locked --workspace $(WITHOUT_LLVM)

wheel: build $(PYTHON_ENV)/ready python/src/xla_gym/_setup.py
	mkdir -p python/src/xla_gym/_bin dist
	cp $(BIN)/xla-gym-worker-xla $(BIN)/xla-gym-worker-toy python/src/xla_gym/_bin/
	rm -f dist/*.whl
	cd python && ../$(PYTHON) -m maturin build --release --locked --quiet --auditwheel skip --out ../dist

test-python: wheel
	$(PYTHON) -m pip install --quiet --force-reinstall --no-deps dist/*.whl
	cd python && XLA_GYM_ENGINE_DIR=$(ENGINE_DIR) XLA_GYM_WHEEL=$$(ls $(CURDIR)/dist/*.whl) ../$(PYTHON) -m pytest

# The package fetches the compiler as the set-up of this repository does.
python/src/xla_gym/_setup.py: tools/setup.py
	cp $< $@

$(PYTHON_ENV)/ready: python/tests/requirements.txt
	python3 -m venv --clear $(PYTHON_ENV)
	$(PYTHON) -m pip install --quiet --no-deps -r python/tests/requirements.txt
	touch $@

# Ten graphs picked at random come out as they are in the repository.
test-data: $(DATA_ENV)/ready
	$(DATA_PYTHON) tools/dataset/check_rebuild.py

# Rebuilds the data sets from the frameworks, then what the engine says of it.
data: build $(DATA_ENV)/ready
	$(DATA_PYTHON) tools/dataset/generate.py
	$(DATA_PYTHON) tools/dataset/generate.py --dataset hlo-full-v1
	$(CARGO) build --release --locked -p xla-gym-lab
	$(BIN)/xla-gym-lab manifest
	$(BIN)/xla-gym-lab manifest --folder data/hlo-full-v1

$(DATA_ENV)/ready: tools/dataset/requirements.txt
	python3 -m venv --clear $(DATA_ENV)
	$(DATA_PYTHON) -m pip install --quiet --no-deps -r tools/dataset/requirements.txt
	touch $@

bench: build wheel
	$(PYTHON) -m pip install --quiet --force-reinstall --no-deps dist/*.whl
	$(CARGO) build --release --locked -p xla-gym-lab
	$(BIN)/xla-gym-lab transport
	$(BIN)/xla-gym-lab overhead
	$(BIN)/xla-gym-lab throughput
	XLA_GYM_ENGINE_DIR=$(ENGINE_DIR) $(PYTHON) python/benches/throughput.py

fmt:
	$(CARGO) fmt --all

# The cheapest first: nobody should wait for a compiler to hear of a missing blank.
lint: lint-format lint-python lint-dependencies lint-rust

lint-format:
	$(CARGO) fmt --all -- --check

lint-python: $(PYTHON_ENV)/ready python/src/xla_gym/_setup.py
	cd python && ../$(PYTHON) -m ruff check . && ../$(PYTHON) -m mypy

lint-dependencies: $(DENY)
	$(DENY) --locked check --hide-inclusion-graph bans licenses sources

# Once, and as fast as it can be built: it runs for less than a second. (What is on PyPI is too old for today's
# cargo.)
$(DENY):
	CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
	    $(CARGO) install --quiet --locked --root $(TOOLS)/$(DENY_VERSION) cargo-deny@$(DENY_VERSION)

# What build scripts make, the C++ shim above all, the build after it takes over.
lint-rust: setup
	$(CARGO) clippy --release --locked --workspace $(WITHOUT_LLVM) --all-targets -- -D warnings

clean:
	$(CARGO) clean
