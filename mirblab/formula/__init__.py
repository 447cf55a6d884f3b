"""formula: LaTeX and MathML to trees, and search by their structure."""

import lazy_loader

_SUBMODULES = [
    *("approach0", "content", "explain", "index", "latex", "markup", "mathml", "operators", "posts", "pretokens"),
    *("search", "tangent", "tree"),
]
__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submodules=_SUBMODULES)
