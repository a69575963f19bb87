"""Reading back what gpubench wrote itself: JSON with a schema name, quantities as plain numbers."""

from __future__ import annotations

import json
from typing import TypeVar

import pydantic

from gpubench.errors import DataError

T = TypeVar("T", bound=pydantic.BaseModel)


def parse_record(kind: type[T], schema: str, text: str, source: str) -> T:
    """Validate a record.

    Raises:
        DataError: not JSON, another schema or version, or fields that don't fit; names ``source``.
    """
    try:
        plain = json.loads(text)
    except (ValueError, RecursionError):
        raise DataError(f"{source} is cut off or not JSON", then="restore it from a copy of the campaign") from None
    found = plain.get("schema") if isinstance(plain, dict) else None
    if found != schema:
        raise DataError(
            f"{source} is {found or 'no record of gpubench'}, not {schema}", then="use the gpubench that wrote it"
        )
    try:
        return kind.model_validate(plain, context={"plain": True})
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise DataError(f"{source}: '{where}': {first['msg']}") from None
