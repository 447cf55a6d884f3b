from .catalogue import build_from_files as build_from_files
from .catalogue import build_hard_negatives as build_hard_negatives
from .catalogue import collection_groups as collection_groups
from .catalogue import collection_table as collection_table
from .shared.html import find_formulas as find_formulas
from .shared.html import title_to_text as title_to_text
from .stackexchange.threads import example_dump as example_dump
from .stackexchange.threads import read_threads as read_threads
