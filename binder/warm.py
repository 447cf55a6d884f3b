"""warm: what an image does once so that notebooks start at once: collections, vectors, runs, compiled code."""

from __future__ import annotations

import mirblab as lab

SYSTEMS = ("bm25", "minilm")


def main() -> None:
    """Derive the bundled collections, search each with both systems, and draw one map, which compiles UMAP."""
    names = lab.collections().query("state == 'bundled'").index.tolist()
    for name in names:
        collection = lab.load(name)
        for system in SYSTEMS:
            lab.system(system).search(collection)
    texts = lab.load(names[0]).corpus.text.tolist()
    vectors = lab.encoder("minilm").vectors(texts, "document")
    lab.analysis.project(vectors, [f"{place:05d}" for place in range(len(texts))])
    print(f"{len(names)} collections searched with {', '.join(SYSTEMS)}; the first map is drawn")


if __name__ == "__main__":
    main()
