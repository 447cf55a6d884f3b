from .summary import cost_table as cost_table
from .summary import input_table as input_table
from .summary import model_table as model_table
