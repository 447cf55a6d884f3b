"""version: the number of the code that turns a formula into tokens, so that an index is never read by other code."""

from __future__ import annotations

# Raised by one whenever a formula gives other tokens; a test fails when tokens change without it.
VERSION = "1"
