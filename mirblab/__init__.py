"""mirblab: a workbench for mathematical information retrieval.

    import mirblab as lab

    c = lab.load("mini-qa")
    run = lab.system("bm25").search(c, depth=100)
    values = lab.evaluate(run, c, ["nDCG@10", "R@100"])

Names are imported when they are first used, so that `import mirblab` takes no time; `__init__.pyi` lists them.
"""

import lazy_loader as _lazy

__version__ = "0.2.0"

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
