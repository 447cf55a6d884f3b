from .arqmath import read_submission as read_submission
from .measures import ceiling as ceiling
from .measures import evaluate_from_grades as evaluate_from_grades
from .published import paper_lookup as paper_lookup
from .published import paper_table as paper_table
from .significance import describe_comparison as describe_comparison
from .significance import significance_letters as significance_letters
from .significance import value_matrix as value_matrix
