#!/usr/bin/env python3
"""Writes a data set: unoptimised HLO graphs of real models, as the frameworks emit them.

    make data

hlo-v1 holds many small graphs, hlo-full-v1 a few programs of the sizes that people run.

Finished graphs are kept in the work folder, so an interrupted run goes on where it stopped.
The pinned versions give the same bytes each time.
"""

import argparse
import concurrent.futures
import hashlib
import multiprocessing
import pathlib
import re
import sys
import time
import warnings

# Frameworks warn about deprecated names of their own; none of it concerns the graphs.
warnings.filterwarnings("ignore")

import jax

import lowering
import report
from families import all_specs
from pack import pack
from spec import DATASETS
from store import Store

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACK_EVERY = 100  # Graphs between two writings of the archives, so that partial results exist.


def make(store, module, spec):
    """Lowers one graph and stores it; returns nothing, or why it failed."""
    try:
        # Cached traces would make a graph depend on those made before it.
        jax.clear_caches()
        text = lowering.hlo_text(spec.build())
        sequence = lowering.opcodes(text)
    except Exception as error:
        return f"{type(error).__name__}: {error}".splitlines()[0][:300]
    facts = {
        "instructions": len(sequence),
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
        "opcode_sequence": lowering.opcode_fingerprint(sequence),
        "classes": report.opcode_classes(text, sequence),
    }
    store.save(module, spec, text, facts)
    return None


def make_by_id(folder, dataset, graph_id):
    """The same in a worker process, which cannot be handed functions."""
    warnings.filterwarnings("ignore")
    module, spec = next(pair for pair in all_specs(dataset) if pair[1].id == graph_id)
    return make(Store(folder), module, spec)


def results(store, missing, jobs):
    """Yields (spec, failure or None) as graphs are finished."""
    if jobs == 1:
        for module, spec in missing:
            yield spec, make(store, module, spec)
        return
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(jobs, mp_context=context) as pool:
        futures = {
            pool.submit(make_by_id, store.folder, spec.dataset, spec.id): spec
            for _, spec in missing
        }
        try:
            for future in concurrent.futures.as_completed(futures):
                yield futures[future], future.result()
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            raise


class Progress:
    """A bar with rate and time left on stderr; a line now and then if that is not a terminal."""

    def __init__(self, total):
        self.total, self.done, self.failed = total, 0, 0
        self.start = self.shown = time.monotonic()

    def advance(self, spec, failure):
        self.done += 1
        if failure:
            self.failed += 1
            print(f"\r\033[K{spec.id} failed: {failure}", file=sys.stderr)
        now = time.monotonic()
        last = self.done == self.total
        if not sys.stderr.isatty() and now - self.shown < 10 and not last:
            return
        self.shown = now
        rate = self.done / (now - self.start)
        left = int((self.total - self.done) / rate)
        filled = 30 * self.done // self.total
        bar = "#" * filled + "." * (30 - filled)
        text = f"[{bar}] {self.done}/{self.total}  {rate:.1f} graphs/s  {left // 60}:{left % 60:02}"
        text += f" left  {spec.family}/{spec.name}"
        start, end = ("\r\033[K", "\n" if last else "") if sys.stderr.isatty() else ("", "\n")
        print(f"{start}{text[:110]}", end=end, file=sys.stderr, flush=True)


def write(store, specs, out, quiet=False):
    kept, duplicates = pack(store, specs, out)
    if quiet:
        return
    print(report.family_table(kept))
    print(f"graphs in which an opcode class occurs: {report.coverage_table(kept)}")
    for spec, original in duplicates:
        print(f"dropped {spec.id}: the opcode sequence of {original.id}")
    size = sum(path.stat().st_size for path in out.iterdir())
    print(f"{len(duplicates)} duplicates dropped; {size:,} bytes in {out}")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--dataset", choices=DATASETS, default=DATASETS[0],
        help=f"which data set (default {DATASETS[0]})",
    )  # fmt: skip
    parser.add_argument("--only", metavar="REGEX", help="make graphs whose id matches this")
    parser.add_argument("--list", action="store_true", help="list the graphs and stop")
    parser.add_argument(
        "--out", type=pathlib.Path, metavar="DIR",
        help="folder of the archives (default data/DATASET; with --only: write none)",
    )  # fmt: skip
    parser.add_argument(
        "--work", type=pathlib.Path, default=ROOT / ".dataset-work", metavar="DIR",
        help="folder of finished graphs (default .dataset-work)",
    )  # fmt: skip
    parser.add_argument("--jobs", type=int, default=1, help="processes (default 1)")
    options = parser.parse_args()
    if options.out is None and not options.only:
        options.out = ROOT / "data" / options.dataset
    return options


def main():
    options = arguments()
    specs = list(all_specs(options.dataset))
    wanted = [pair for pair in specs if re.search(options.only or "", pair[1].id)]
    if options.list:
        for _, spec in wanted:
            print(f"{spec.id}\t{spec.kind}\t{spec.what}")
        return 0
    store = Store(options.work / options.dataset)
    missing = [(module, spec) for module, spec in wanted if store.facts(module, spec) is None]
    print(f"{len(wanted)} graphs, {len(missing)} to make", file=sys.stderr)
    progress = Progress(len(missing))
    failures = []
    try:
        for spec, failure in results(store, missing, options.jobs):
            progress.advance(spec, failure)
            if failure:
                failures.append((spec, failure))
            if options.out and progress.done % PACK_EVERY == 0:
                write(store, specs, options.out, quiet=True)
    except KeyboardInterrupt:
        print("\ninterrupted; the same command goes on from here", file=sys.stderr)
        return 130
    if options.out:
        write(store, specs, options.out)
    for spec, failure in failures:
        print(f"failed {spec.id}: {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
