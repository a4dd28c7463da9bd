"""Votes files and run folders as arrays: the only place where ids become indices."""

from clash.votes.from_run import run_votes
from clash.votes.matrix import LabelUse, VoteKind, VoteRow, Votes
from clash.votes.read import encode, read_votes
from clash.votes.write import dump_votes, write_votes

__all__ = [
    "LabelUse",
    "VoteKind",
    "VoteRow",
    "Votes",
    "dump_votes",
    "encode",
    "read_votes",
    "run_votes",
    "write_votes",
]
