"""data: collections, candidates, runs, the k best documents, and near-duplicates."""
