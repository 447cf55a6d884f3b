from .candidates import Candidates as Candidates
from .collection import Collection as Collection
