"""Run the command with `python -m mirblab`."""

from mirblab.app.cli import main

main()
