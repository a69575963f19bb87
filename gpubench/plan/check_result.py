"""The result of one check of a site or a cluster."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class CheckResult:
    """``ok`` is None if it couldn't be made."""

    ok: bool | None
    what: str

    def __str__(self) -> str:
        return f"{ {True: 'ok', False: 'wrong', None: 'not checked'}[self.ok] }: {self.what}"
