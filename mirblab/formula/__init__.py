"""formula: LaTeX and MathML to trees, and search by their structure."""
