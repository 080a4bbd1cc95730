#!/usr/bin/env bash
# Shows, on GPT-2 training steps, what XLA's own CPU compiler makes of them and what a better pass
# order makes of them: found, verified, written down and explained.
set -euo pipefail
cd "$(dirname "$0")/.."

gym=target/release/xla-gym
graph=testdata/graphs/gpt2-train-4l.hlo.zst
model=hlo-v1/gpt2/train-1l-adamw
mkdir -p target/demo

say() { printf '\n\033[1m$ %s\033[0m\n' "$*"; }
run() { say "xla-gym $*"; "$gym" "$@"; }

# An order that is known.
run score "$graph" --normalise --passes @testdata/orders/gpt2-train-4l.txt

# The same without anybody knowing an order beforehand.
run optimize "$model" --no-store --measure 8 \
    --recipe target/demo/recipe.json --report target/demo/report.html -o target/demo/optimised.hlo
run apply target/demo/recipe.json "$model"

printf '\nOpen target/demo/report.html in a browser: which passes did it.\n'
