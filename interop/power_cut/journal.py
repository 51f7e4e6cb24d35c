"""Reads the journal that `forgetful.c` writes."""

import enum
import mmap
import os
import struct
from dataclasses import dataclass

MAGIC = 0x74676F46
HEAD = struct.Struct("<IHHQqqQIIQ")


class Kind(enum.IntEnum):
    OPEN = 1
    CLOSE = 2
    DUP = 3
    WRITE = 4
    TRUNCATE = 5
    RENAME = 6
    UNLINK = 7
    MKDIR = 8
    RMDIR = 9
    LINK = 10
    SYNC_BEGIN = 11
    SYNC_END = 12
    UNSUPPORTED = 13


CREATED = 1
TRUNCATED = 2
ZEROS = 4


@dataclass(frozen=True, slots=True)
class Entry:
    """One recorded call. For `file` and `value` see `struct entry` in `forgetful.c`."""

    kind: Kind
    flags: int
    nanos: int
    file: int
    value: int
    bytes: int
    path: str
    other: str
    # The bytes that were written; None when they are all zeros.
    data: memoryview | None

    def __str__(self) -> str:
        match self.kind:
            case Kind.WRITE:
                what = f"fd {self.file}, {self.bytes} bytes at {self.value}"
            case Kind.TRUNCATE:
                what = f"fd {self.file} to {self.value}"
            case Kind.SYNC_BEGIN:
                what = f"sync {self.file} of " + (f"fd {self.value}" if self.value >= 0 else f"folder {self.path!r}")
            case Kind.SYNC_END:
                what = f"sync {self.file}"
            case Kind.OPEN:
                what = f"fd {self.file}, {self.path!r}" + (", created" if self.flags & CREATED else "")
            case Kind.CLOSE | Kind.DUP:
                what = f"fd {self.file}"
            case _:
                what = " -> ".join(repr(path) for path in (self.path, self.other) if path)
        return f"{self.kind.name} {what}"


def read(path: str) -> list[Entry]:
    """Returns all complete entries, in order. The last entry is cut off if the process was killed while writing
    it."""
    if os.path.getsize(path) == 0:
        return []
    with open(path, "rb") as file:
        whole = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    entries = []
    at = 0
    while at + HEAD.size <= len(whole):
        magic, kind, flags, nanos, number, value, size, path_bytes, other_bytes, stored = HEAD.unpack_from(whole, at)
        if magic != MAGIC:
            raise ValueError(f"{path}: no entry at {at}")
        from_, to = at + HEAD.size, at + HEAD.size + path_bytes + other_bytes + stored
        if to > len(whole):
            break
        middle = from_ + path_bytes
        entries.append(
            Entry(
                kind=Kind(kind),
                flags=flags,
                nanos=nanos,
                file=number,
                value=value,
                bytes=size,
                path=os.fsdecode(bytes(whole[from_:middle])),
                other=os.fsdecode(bytes(whole[middle : middle + other_bytes])),
                data=None if flags & ZEROS or not stored else whole[to - stored : to],
            )
        )
        at = to
    return entries
