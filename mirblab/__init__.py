"""mirblab: a workbench for mathematical information retrieval.

    import mirblab as lab

    c = lab.load("mini-qa")
    run = lab.system("bm25").search(c, depth=100)
    values = lab.evaluate(run, c, ["nDCG@10", "R@100"])

Names are imported when they are first used, so that `import mirblab` takes no time; `__init__.pyi` lists them.
"""

import lazy_loader as _lazy

__version__ = "0.2.0"

_import_name, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    """Return a public name, imported when it is first used; AttributeError with the nearest one for a misspelt name."""
    if name in __all__ or name.startswith("_"):
        return _import_name(name)
    from mirblab.core.errors import suggest

    raise AttributeError(f"mirblab has no '{name}'{suggest(name, __all__)}", name=name)
