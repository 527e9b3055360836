"""What could not be written, as an error of ours that says why."""

from tape.core.errors import TapeError, Unavailable


def refusal(error: Exception, what: str) -> TapeError:
    """What Spark or Arrow raises of something it could not write, as ours."""
    if isinstance(error, TapeError):
        return error
    reason = next((line for line in str(error).splitlines() if "No space left" in line), str(error).partition("\n")[0])
    return Unavailable(f"{what} was not written: {type(error).__name__}: {reason.strip()}")
