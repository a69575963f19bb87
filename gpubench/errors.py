"""The tool's failures: one class per kind, each with its exit code.

The message of every error says what happened, to which file or job, and what to do next. The command line prints it as
one line (a line for each mistake in a file); a traceback that reaches the user is a bug (exit code 1).

| code | meaning |
|---|---|
| 0 | done (``compare``: every planned comparison equivalent or improved) |
| 1 | a bug in gpubench |
| 2 | usage: an option, a name or a value that does not exist |
| 3 | bad data: a file that can't be read, torn records, samples that don't allow a verdict |
| 4 | campaign incomplete: a run was skipped (other than for a known issue, as planned) or lost, or every run failed |
| 5 | a tool, a daemon or a package index is missing or doesn't answer, a build failed, or a disk is full |
| 6 | plan refused: it can't fit the budget, the site or the images |
| 7 | scheduler or registry error |
| 20 | a regression, or a candidate that breaks |
| 21 | no regression, but something inconclusive or without data |
| 40 | node half: no run record could be written, or the node isn't clean or can't write |
| 130 | interrupted; what was finished is kept |
| 141 | the reader of the output has gone |
"""

from collections.abc import Sequence


class GpubenchError(Exception):
    """A failure that the user can act on.

    Args:
        what: what happened, to which file, key or job.
        then: what to do next; printed behind the message.
        also: others of the kind that were found at the same time; printed in lines of their own.
    """

    exit_code = 1

    def __init__(self, what: str, *, then: str = "", also: "Sequence[GpubenchError]" = ()) -> None:
        super().__init__(what)
        self.what = what
        self.then = then
        self.every = (self, *also)

    def __str__(self) -> str:
        return f"{self.what}; {self.then}" if self.then else self.what


class UsageError(GpubenchError):
    """An option, a name or a value on the command line or in a profile is wrong."""

    exit_code = 2


def joined(faults: Sequence[GpubenchError]) -> UsageError:
    """All faults of a file as one error; there is at least one."""
    every = [error for fault in faults for error in fault.every]
    return UsageError(every[0].what, then=every[0].then, also=every[1:])


class DataError(GpubenchError):
    """Data can't be read, or doesn't allow a verdict."""

    exit_code = 3


class IncompleteError(GpubenchError):
    """A planned run was skipped or lost, or every run failed. One failed run among others is a finding."""

    exit_code = 4


class MissingToolError(GpubenchError):
    """A program, a daemon or a package index is missing or doesn't answer."""

    exit_code = 5


class BuildError(MissingToolError):
    """An image can't be built of what was asked for: another try would fail as well.

    Args:
        what, then: as for ``GpubenchError``.
        spec: of the image, as typed; empty: not said.
    """

    def __init__(self, what: str, *, then: str = "", spec: str = "") -> None:
        super().__init__(what, then=then)
        self.spec = spec


class PlanRefusedError(GpubenchError):
    """The plan can't be carried out as asked."""

    exit_code = 6


class SchedulerError(GpubenchError):
    """A scheduler or a registry refused or failed."""

    exit_code = 7


class InterruptedByUserError(GpubenchError):
    exit_code = 130


EXIT_REGRESSION = 20
EXIT_INCONCLUSIVE = 21
EXIT_READER_GONE = 141
"""128 + SIGPIPE: the shell's exit code for a program that wrote to a pipe after its reader had ended."""
