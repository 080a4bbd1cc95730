"""What a data set holds, as tables: sizes by family, and in how many graphs each opcode occurs."""

import collections
import statistics

# Passes act on these classes; the data set must show each of them in several graphs.
OPCODE_CLASSES = (
    "while", "conditional", "call", "sort", "topk", "gather", "scatter", "batched-dot",
    "convolution", "reduce-window", "select-and-scatter", "rng-bit-generator", "cholesky",
    "triangular-solve", "fft", "all-reduce", "all-gather", "reduce-scatter",
    "collective-permute", "all-to-all", "custom-call", "bf16",
)  # fmt: skip


def opcode_classes(text, sequence):
    """The classes that occur in a graph: opcodes, and two that only the text shows."""
    found = {name for name in OPCODE_CLASSES if name in set(sequence)}
    if "lhs_batch_dims={" in text:
        found.add("batched-dot")
    if "bf16[" in text:
        found.add("bf16")
    return sorted(found)


def family_table(kept):
    families = collections.defaultdict(list)
    for spec, facts in kept:
        families[spec.family].append(facts["instructions"])
    lines = [f"{'family':<16}{'graphs':>7}{'min':>8}{'median':>8}{'max':>8}  instructions"]
    for family, counts in families.items():
        middle = int(statistics.median(counts))
        row = f"{family:<16}{len(counts):>7}{min(counts):>8,}{middle:>8,}{max(counts):>8,}"
        lines.append(row)
    total = [count for counts in families.values() for count in counts]
    large = sum(count > 12_000 for count in total)
    lines.append(f"{len(total)} graphs, {sum(total):,} instructions, {large} graphs above 12,000")
    return "\n".join(lines)


def coverage_table(kept):
    counts = collections.Counter(name for _, facts in kept for name in facts["classes"])
    return ", ".join(f"{name} {counts[name]}" for name in OPCODE_CLASSES)
