"""naturalproofs: the NaturalProofs release to collections, theorem to references for four subsets, to proof for two.

Read are `naturalproofs_proofwiki.json`, `_stacks.json`, `_trench.json` (real analysis) and `_stein.json` (number
theory; made by the script that the release has instead) of Welleck et al. 2021, Zenodo record 4902289. MIRB excludes
documents per query in the two textbooks and does not say which; nothing is excluded here but the theorem itself.
"""

from __future__ import annotations

from pathlib import Path

from mirblab.errors import unknown
from mirblab.sources import naturalproofs_json as raw
from mirblab.sources import naturalproofs_tasks as tasks
from mirblab.sources import release as releases
from mirblab.sources import shape
from mirblab.sources.naturalproofs_json import Subset
from mirblab.sources.origin import together
from mirblab.sources.release import Release
from mirblab.sources.shape import Row
from mirblab.terminal import say

ADDRESS = "https://doi.org/10.5281/zenodo.4632538"
LABELS = ("masked", "published")
SUBSETS = {
    "proofwiki": ("proofwiki", "ProofWiki", "CC-BY-SA-3.0 (texts of ProofWiki)"),
    "stacks": ("stacks", "Stacks project", "GFDL-1.2-or-later (texts of the Stacks project)"),
    "trench": ("realanalysis", "real analysis textbook", "see the textbook of W. Trench"),
    "stein": ("numbertheory", "number theory textbook", "see the textbook of W. Stein"),
}
WITH_PROOFS = ("proofwiki", "stacks")
REFERENCES = (
    "Given a math theorem, retrieve useful references, such as theorems, lemmas, and definitions, that are useful for "
    "proving the given theorem."
)


def build(origin: str | Path | None, out: Path, *, labels: str = "masked") -> list[Path]:
    """Write the collections of the subsets that are there under *out*, print what was left out, return the folders.

    For each subset `naturalproofs-<name>` (theorem to the references of its proof, among all theorems, definitions
    and others with a text); for ProofWiki and Stacks also `naturalproofs-<name>-qa` (theorem to its proofs, among
    all proofs). Test, dev and train are the released examples. Labels of LaTeX tell the answer: by default
    references read `[ref]` and titles that are labels are dropped; *labels* "published" keeps both. *origin* is a
    folder, an archive or a single file. Raises MirblabError, with file and line or item, and FileNotFoundError.
    """
    if labels not in LABELS:
        raise unknown("treatment of labels", labels, LABELS)
    out = Path(out)
    with releases.opened(origin, "naturalproofs_proofwiki.json and its neighbours", ADDRESS) as release:
        files = _files(release)
        names = tuple(name for stem in files for name in _names(stem))
        with together(out, names) as folders:
            for stem, path in files.items():
                subset = raw.read(path, masked=labels == "masked")
                for folder in folders:
                    if folder.name in _names(stem):
                        _save(folder, subset, stem, path, labels, release)
    return [out / name for name in names]


def _files(release: Release) -> dict[str, Path]:
    files = {
        stem: release.one(rf"naturalproofs_{stem}\.json", f"naturalproofs_{stem}.json")
        for stem in SUBSETS
        if release.matching(rf"naturalproofs_{stem}\.json")
    }
    if not files:
        raise FileNotFoundError(
            f"no naturalproofs_*.json of {', '.join(SUBSETS)}; found {release.shown()}; give the folder that holds them"
        )
    if missing := [f"naturalproofs_{stem}.json" for stem in SUBSETS if stem not in files]:
        say(f"not there, so not built: {', '.join(missing)}")
    return files


def _names(stem: str) -> list[str]:
    name = f"naturalproofs-{SUBSETS[stem][0]}"
    return [name, *([f"{name}-qa"] if stem in WITH_PROOFS else [])]


def _save(folder: Path, subset: Subset, stem: str, path: Path, labels: str, release: Release) -> None:
    _, shown, licence = SUBSETS[stem]
    derive = tasks.answers if folder.name.endswith("-qa") else tasks.references
    about: Row = {
        tasks.answers: {
            "title": f"NaturalProofs, {shown}: theorem to its proof",
            "follows": f"mirb-{stem}-qa",
            "task": "Question-Answer Retrieval",
            "instruction": "Given a math theorem, retrieve its proof.",
        },
        tasks.references: {
            "title": f"NaturalProofs, {shown}: theorem to the references of its proof",
            "follows": f"mirb-{SUBSETS[stem][0]}-premise",
            "task": "Premise Retrieval",
            "instruction": REFERENCES,
            "candidates": "not-self",
        },
    }[derive]
    parts = derive(subset, published=labels == "published")
    revision, about = releases.revision([path]), about | {"labels": labels}
    made = {"builder": "naturalproofs", "revision": revision, "licence": licence}
    shape.save(folder, parts, about, release.origin, **made, options={"labels": labels})
