"""train: contrastive training of encoders on views that say the same, and of rerankers on collections."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
