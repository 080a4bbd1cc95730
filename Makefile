# Every target does its own set-up; nothing needs to be installed by hand.
# Release builds only: the C++ shim takes a minute to build, and once is enough.

CARGO ?= cargo
BIN := target/release

.PHONY: help setup build demo test bench fmt lint clean

help:
	@echo "make demo   set up, build, and compare a pass order with XLA's own on a GPT-2 step"
	@echo "make test   set up, build, and run all tests"
	@echo "make build  set up and build the xla-gym command ($(BIN)/xla-gym)"
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

test: setup
	python3 -m unittest discover -s tools -p 'test_*.py'
	$(CARGO) build --release --locked --workspace --bins
	$(CARGO) test --release --locked --workspace

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
