from .data import by_rules as by_rules
from .data import save as save
from .evaluation import held_out as held_out
from .recipes import Recipe as Recipe
from .recipes import recipe as recipe
from .training import begun_from as begun_from
from .training import log as log
from .training import train as train
