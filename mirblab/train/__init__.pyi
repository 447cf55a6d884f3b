from .pairs import rephrase_by_rules as rephrase_by_rules
from .pairs import save_rephrasings as save_rephrasings
from .recipes import Recipe as Recipe
from .recipes import recipe as recipe
from .training import starting_model as starting_model
from .training import train as train
from .training import training_log as training_log
from .validation import held_out as held_out
