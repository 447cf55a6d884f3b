"""shared: code that the builders of several sources use."""
