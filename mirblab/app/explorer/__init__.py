"""explorer: a widget that searches a collection by several systems and shows their matches."""

from mirblab.app.explorer.widget import Explorer, explore

__all__ = ["Explorer", "explore"]
