from .candidates import Candidates as Candidates
