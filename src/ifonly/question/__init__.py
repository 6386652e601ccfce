"""Questions as values: query, goal, demands, costs, the statement of all of them, and its program."""

from typing import TYPE_CHECKING

from ifonly._moved import forwarding

if not TYPE_CHECKING:  # to type checkers, what is not above is not there
    __getattr__ = forwarding(__name__)
