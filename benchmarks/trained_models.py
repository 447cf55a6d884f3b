"""trained_models: are trained models better than what they begin with, on queries that no training has seen?

    python benchmarks/trained_models.py [--data FOLDER] [--collections a,b] [--queries 200] [--documents 1200]
                                        [--systems bm25 minilm minilm-qa] [--baseline minilm]

Collections are cut as in fusion_weights.py, with the queries of their test splits. Each system is compared with the
baseline by a paired permutation test, with Holm's correction over the systems of each collection. Train the models
first: mirblab train minilm-qa, minilm-late-qa, minilm-cross.
"""

from __future__ import annotations

import argparse
import warnings

from fusion_weights import MEASURE, OTHER_RULES, RULES, add_arguments, load_collections

import mirblab as lab
from mirblab.evaluation.measures import QueryWarning


def main() -> None:
    """Print each system's means and which differ from the baseline's."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_arguments(parser)
    parser.set_defaults(collections=",".join([*RULES, *OTHER_RULES]))
    systems = ["bm25", "minilm", "minilm-qa", "minilm-late", "minilm-late-qa"]
    parser.add_argument("--systems", nargs="+", default=systems)
    parser.add_argument("--baseline", default="minilm")
    given = parser.parse_args()
    warnings.simplefilter("ignore", QueryWarning)
    result = lab.experiment(
        given.systems, load_collections(given), [MEASURE], baseline=given.baseline, correction="holm"
    )
    means = result.values.pivot_table(index="collection", columns="system", values="value", observed=True)
    print(means.round(3).to_string(), means.mean().round(3).to_string(), sep="\n\n")
    print(result.compare().round(4).to_string(index=False))


if __name__ == "__main__":
    main()
