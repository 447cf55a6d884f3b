"""retrieval: BM25, dense search, late interaction, fusion, reranking, and systems by name."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
