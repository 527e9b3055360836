"""The reaction that a path names."""

from tape.core.reaction import check_reaction_id
from tape.server.http.request import Request


def reaction_id_of(request: Request) -> str:
    return check_reaction_id(request.values["reaction_id"])
