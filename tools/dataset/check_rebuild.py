"""Rebuilds graphs picked at random and compares them with the data sets, byte for byte.

The same text means the same fingerprint. Run by `make test`; the full rebuild is `make data`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
DATA = HERE.parent.parent / "data"

# The largest take seconds each to lower, and are made like the others.
LARGEST = 6000


def rebuild(dataset: str, count: int, seed: int) -> list[tuple[str, bool]]:
    """Makes `count` graphs of a data set again; tells of each whether it is the same."""
    graphs = [
        graph
        for graph in json.loads((DATA / dataset / "graphs.json").read_text())
        if graph["instructions"] <= LARGEST
    ]
    picked = random.Random(seed).sample(graphs, count)
    pattern = "^(" + "|".join(re.escape(graph["id"]) for graph in picked) + ")$"
    print(f"rebuilding {len(picked)} graphs of {dataset} (--seed {seed})", flush=True)
    same = []
    with tempfile.TemporaryDirectory() as work:
        generate = [sys.executable, str(HERE / "generate.py"), "--dataset", dataset]
        subprocess.run([*generate, "--only", pattern, "--work", work], check=True)
        for graph in picked:
            member = Path(work) / dataset / graph["family"] / graph["member"]
            rebuilt = hashlib.sha256(member.read_bytes()).hexdigest()
            same.append((graph["id"], rebuilt == graph["sha256"]))
    return same


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10, help="how many of hlo-v1 (default 10)")
    parser.add_argument(
        "--full", type=int, default=1, help="how many of hlo-full-v1, each slower (default 1)"
    )
    parser.add_argument("--seed", type=int, help="which graphs (default: others each time)")
    args = parser.parse_args()
    seed = args.seed if args.seed is not None else random.SystemRandom().randrange(10**6)
    results = [
        result
        for dataset, count in (("hlo-v1", args.count), ("hlo-full-v1", args.full))
        if count > 0
        for result in rebuild(dataset, count, seed)
    ]
    wrong = [graph for graph, same in results if not same]
    for graph in wrong:
        print(f"{graph} came out differently", file=sys.stderr)
    print(f"{len(results) - len(wrong)} passed, {len(wrong)} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
