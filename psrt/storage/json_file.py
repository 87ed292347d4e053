"""A JSON document that contains its checksum, readable by any JSON parser.

The last member is `"xxh3"`, the checksum of all bytes before it. Any changed, missing or added byte
is found. Members `format` and `version` come first.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from psrt.storage.checksums import checksum
from psrt.storage.failures import damaged

_END = re.compile(rb',\n "xxh3": "([0-9a-f]{16})"\n}\n\Z')
_END_BYTES = len(b',\n "xxh3": "0123456789abcdef"\n}\n')


def encode(format_name: str, version: int, members: Mapping[str, Any]) -> bytes:
    """Return the bytes of a document; raises `ValueError` for members that are not JSON."""
    document = {"format": format_name, "version": version, **members}
    text = json.dumps(document, indent=1, allow_nan=False).removesuffix("\n}").encode("ascii")
    return text + f',\n "xxh3": "{checksum(text):016x}"\n}}\n'.encode("ascii")


def decode(file: str, data: bytes, format_name: str, version: int) -> dict[str, Any]:
    """Return the members of a document; raises `StorageError` FILE_DAMAGED naming `file`."""
    end = _END.match(data, max(0, len(data) - _END_BYTES))
    if end is None:
        raise damaged(file, f"its {len(data)} bytes do not end with a checksum")
    if checksum(data[: end.start()]) != int(end[1], 16):
        raise damaged(file, f"its first {end.start()} bytes do not have their checksum")
    try:
        document = dict(json.loads(data))
    except (ValueError, TypeError, RecursionError) as error:
        raise damaged(file, f"it is not a JSON object ({error})") from error
    found = document.pop("format", None), document.pop("version", None)
    if found != (format_name, version):
        raise damaged(file, f"it is {found}, expected {(format_name, version)}")
    del document["xxh3"]
    return document
