from . import bm25 as bm25
from . import fusion as fusion
from .bm25 import published_defect_table as published_defect_table
from .late_interaction import token_similarities as token_similarities
from .late_interaction import token_storage_table as token_storage_table
from .systems import System as System
from .tokenizers import tokenizer as tokenizer
