"""Run the command with `python -m mirblab`."""

from mirblab.cli import main

main()
