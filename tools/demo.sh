#!/usr/bin/env bash
# Shows, on a GPT-2-style training step, what XLA's own CPU compiler makes of it and what a
# better pass order makes of it.
set -euo pipefail
cd "$(dirname "$0")/.."

gym=target/release/xla-gym
graph=testdata/graphs/gpt2-train-4l.hlo.zst
order=testdata/orders/gpt2-train-4l.txt

say() { printf '\n\033[1m$ %s\033[0m\n' "$*"; }
run() { say "xla-gym $*"; "$gym" "$@"; }

run run "$graph" --normalise --verify --passes "@$order"
run score "$graph" --normalise --passes "@$order"

# The same without anybody knowing the order beforehand.
run optimize hlo-v1/gpt2/train-1l-adamw --recipe target/recipe.json
