# Every target does its own set-up; nothing needs to be installed by hand.
# Release builds only: the C++ shim takes a minute to build, and once is enough.

CARGO ?= cargo
BIN := target/release

# The frameworks that emit the data set's graphs; apart from everything else.
DATA_ENV := .dataset-env
DATA_PYTHON := $(DATA_ENV)/bin/python

.PHONY: help setup build demo test test-data data bench fmt lint clean

help:
	@echo "make demo   set up, build, and compare a pass order with XLA's own on a GPT-2 step"
	@echo "make test   set up, build, and run all tests"
	@echo "make build  set up and build the xla-gym command ($(BIN)/xla-gym)"
	@echo "make data   rebuild the benchmark graphs and their manifest"
	@echo "make test-data  rebuild ten of them, picked at random, and compare"
	@echo "make bench  measure what the engine adds to the passes' own time"
	@echo "make fmt    format the code"
	@echo "make lint   check format and lints"
	@echo "make setup  fetch the XLA engine into .engine (or \$$XLA_GYM_ENGINE_DIR)"

setup:
	@python3 tools/setup.py

build: setup
	$(CARGO) build --release --locked -p xla-gym -p xla-gym-worker-xla

demo: build
	@tools/demo.sh

# All targets at once, or cargo would build the shim twice, with and without what only tests need.
test: setup test-data
	python3 -m unittest discover -s tools -p 'test_*.py'
	$(CARGO) build --release --locked --workspace --all-targets
	$(CARGO) test --release --locked --workspace

# Ten graphs picked at random come out as they are in the repository.
test-data: $(DATA_ENV)/ready
	$(DATA_PYTHON) tools/dataset/check_rebuild.py

# Rebuilds the data set from the frameworks, then what the engine says of it.
data: build $(DATA_ENV)/ready
	$(DATA_PYTHON) tools/dataset/generate.py
	$(CARGO) build --release --locked -p xla-gym-lab
	$(BIN)/xla-gym-lab manifest

$(DATA_ENV)/ready: tools/dataset/requirements.txt
	python3 -m venv --clear $(DATA_ENV)
	$(DATA_PYTHON) -m pip install --quiet --no-deps -r tools/dataset/requirements.txt
	touch $@

bench: build
	$(CARGO) build --release --locked -p xla-gym-lab
	$(BIN)/xla-gym-lab transport
	$(BIN)/xla-gym-lab overhead

fmt:
	$(CARGO) fmt --all

lint: setup
	$(CARGO) fmt --all -- --check
	$(CARGO) clippy --release --locked --workspace --all-targets -- -D warnings

clean:
	$(CARGO) clean
