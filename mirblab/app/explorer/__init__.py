"""explorer: a widget that searches a collection by several systems and shows what each finds, and why."""

from mirblab.app.explorer.widget import Explorer, explore

__all__ = ["Explorer", "explore"]
