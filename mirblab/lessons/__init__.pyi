from .exercises import Verdict as Verdict
from .exercises import check as check
from .guesses import Guess as Guess
from .guesses import guess as guess
