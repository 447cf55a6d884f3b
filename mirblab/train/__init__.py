"""train: contrastive training of encoders on views that say the same."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "evaluation": ["held_out"],
        "settings": ["Recipe", "recipe"],
        "texts": ["by_rules", "save"],
        "training": ["begun_from", "log", "train"],
    },
)
