"""Rebuilds graphs picked at random and compares them with the data set, byte for byte.

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
DATA = HERE.parent.parent / "data" / "hlo-v1"

# The largest take seconds each to lower, and are made like the others.
LARGEST = 6000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10, help="how many graphs (default 10)")
    parser.add_argument("--seed", type=int, help="which graphs (default: others each time)")
    args = parser.parse_args()
    seed = args.seed if args.seed is not None else random.SystemRandom().randrange(10**6)
    graphs = [
        graph
        for graph in json.loads((DATA / "graphs.json").read_text())
        if graph["instructions"] <= LARGEST
    ]
    picked = random.Random(seed).sample(graphs, args.count)
    print(f"rebuilding {len(picked)} graphs (--seed {seed})", flush=True)
    pattern = "^(" + "|".join(re.escape(graph["id"]) for graph in picked) + ")$"
    wrong = []
    with tempfile.TemporaryDirectory() as work:
        generate = [sys.executable, str(HERE / "generate.py"), "--only", pattern, "--work", work]
        subprocess.run(generate, check=True)
        for graph in picked:
            member = Path(work) / graph["family"] / graph["member"]
            rebuilt = hashlib.sha256(member.read_bytes()).hexdigest()
            if rebuilt != graph["sha256"]:
                wrong.append(graph["id"])
    for graph in wrong:
        print(f"{graph} came out differently", file=sys.stderr)
    print(f"{len(picked) - len(wrong)} passed, {len(wrong)} failed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
