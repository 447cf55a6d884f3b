"""encoders: texts to vectors, by local and by hosted models, through a cache."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
