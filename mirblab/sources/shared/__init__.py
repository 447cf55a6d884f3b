"""shared: what the builders of several sources need."""
