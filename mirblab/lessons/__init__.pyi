from .exercises import check as check
from .guesses import guess as guess
