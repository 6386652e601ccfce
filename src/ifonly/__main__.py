"""``python -m ifonly``: the command line, where its script is not on the path."""

from ifonly.cli import main

main(prog_name="ifonly")
