from .arqmath import qrels_of_visual_ids as qrels_of_visual_ids
from .arqmath import read_submission as read_submission
from .arqmath import run_of_visual_ids as run_of_visual_ids
from .measures import ceiling as ceiling
from .measures import evaluate_from_grades as evaluate_from_grades
from .published import paper_lookup as paper_lookup
from .significance import significance_letters as significance_letters
from .significance import value_matrix as value_matrix
