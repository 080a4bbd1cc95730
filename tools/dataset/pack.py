"""Archives and the list of graphs: what is published under data/DATASET."""

import hashlib
import io
import json
import tarfile

import zstandard

from spec import super_family
from store import write_whole

# Graphs of a family resemble each other: a long window lets each refer to all before it.
# 27 is the largest that plain `zstd -d --long=27` and most libraries accept.
WINDOW_LOG = 27


def unique_graphs(store, specs):
    """Finished graphs, the first of each opcode sequence; and pairs (duplicate, original)."""
    kept, duplicates, first = [], [], {}
    for module, spec in specs:
        facts = store.facts(module, spec)
        if facts is None:
            continue
        original = first.setdefault(facts["opcode_sequence"], spec)
        if original is spec:
            kept.append((spec, facts))
        else:
            duplicates.append((spec, original))
    return kept, duplicates


def tar_of(members):
    """A tar whose bytes depend on names and contents only."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data in sorted(members):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode, entry.mtime = len(data), 0o644, 0
            tar.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def compress(data):
    parameters = zstandard.ZstdCompressionParameters.from_level(
        19, window_log=WINDOW_LOG, enable_ldm=True, source_size=len(data), write_checksum=True
    )
    return zstandard.ZstdCompressor(compression_params=parameters).compress(data)


def pack(store, specs, out):
    """Writes one archive for each family and graphs.json; returns what was kept and dropped.

    An archive whose content did not change since the last time is not compressed again.
    """
    kept, duplicates = unique_graphs(store, specs)
    families = {}
    for spec, facts in kept:
        families.setdefault(spec.family, []).append((spec, facts))
    for family, graphs in families.items():
        content = hashlib.sha256(
            "".join(f"{spec.name} {facts['sha256']}\n" for spec, facts in graphs).encode()
        ).hexdigest()
        archive = out / f"{family}.tar.zst"
        stamp = store.folder / f"{family}.packed"
        state = f"{content} {{}}\n"
        if archive.exists() and stamp.exists():
            on_disk = hashlib.sha256(archive.read_bytes()).hexdigest()
            if stamp.read_text() == state.format(on_disk):
                continue
        tar = tar_of((f"{spec.name}.hlo", store.text_path(spec).read_bytes()) for spec, _ in graphs)
        packed = compress(tar)
        write_whole(archive, packed)
        write_whole(stamp, state.format(hashlib.sha256(packed).hexdigest()).encode())
    for archive in out.glob("*.tar.zst"):
        if archive.name.removesuffix(".tar.zst") not in families:
            archive.unlink()
    listed = [entry(spec, facts) for spec, facts in sorted(kept, key=lambda pair: pair[0].id)]
    lines = ",\n".join(json.dumps(graph) for graph in listed)
    write_whole(out / "graphs.json", f"[\n{lines}\n]\n".encode())
    return kept, duplicates


def entry(spec, facts):
    """One graph of graphs.json."""
    return {
        "id": spec.id,
        "family": spec.family,
        "super_family": super_family(spec.family),
        "archive": f"{spec.family}.tar.zst",
        "member": f"{spec.name}.hlo",
        "what": spec.what,
        "kind": spec.kind,
        "framework": spec.framework,
        "options": spec.options,
        "instructions": facts["instructions"],
        "sha256": facts["sha256"],
        "opcode_sequence": facts["opcode_sequence"],
    }
