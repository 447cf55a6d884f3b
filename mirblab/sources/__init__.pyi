from .catalogue import build_from_files as build_from_files
from .catalogue import build_hard_negatives as build_hard_negatives
from .catalogue import collection_groups as collection_groups
