"""lessons: guesses, exercises with their checks, and the lessons' two versions."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "exercises": ["Verdict", "check"],
        "guesses": ["Guess", "guess"],
    },
)
