"""A disk with a volatile cache, rebuilt from a journal: what it may hold when the power fails.

Everything that a completed sync covers is on the disk. A seed decides about the rest:

- *Pages*: each page of each file (4 KiB or 512 B) is as it was synced, as it was written last, or as any write in
  between left it, independently of the other pages.
- *Lengths*: a file has its synced length, its last one, or any in between, independently of its pages. Where the
  length is cut, the bytes behind it are lost.
- *Names*: creations, renames, and removals that no sync of their folder covers have happened or not, independently
  of each other. Changes of one name keep their order: none is there without the one before. A rename is never half
  done.

A sync covers what was done before it began. What is done while it runs is covered by the next one.
"""

import os
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from power_cut.journal import CREATED, TRUNCATED, Entry, Kind


class Unsupported(Exception):
    """The server made a call that this disk cannot replay."""


@dataclass(frozen=True)
class Forgetting:
    """One way in which a disk forgets. A seed decides the details."""

    name: str
    # How often this way is drawn, relative to the others.
    weight: int
    page_bytes: int
    # For each file one of these is drawn: the probability that an unsynced page has changed at all.
    keeps_data: tuple[float, ...]
    # For each cut one of these is drawn: the probability that an unsynced change of a name has happened.
    keeps_names: tuple[float, ...]


MODES = (
    Forgetting("nothing unsynced survives", 2, 4096, (0.0,), (0.0,)),
    Forgetting("everything survives", 1, 4096, (1.0,), (1.0,)),
    Forgetting("4 KiB pages", 10, 4096, (0.0, 0.2, 0.5, 0.5, 0.8, 1.0), (0.0, 0.5, 0.9, 1.0)),
    Forgetting("512 B sectors", 7, 512, (0.0, 0.2, 0.5, 0.5, 0.8, 1.0), (0.0, 0.5, 0.9, 1.0)),
)


@dataclass(eq=False, slots=True)
class Write:
    index: int
    offset: int
    bytes: int
    data: memoryview | None

    def part(self, from_: int, to: int) -> bytes | memoryview:
        return bytes(to - from_) if self.data is None else self.data[from_ - self.offset : to - self.offset]


@dataclass(eq=False, slots=True)
class Length:
    """A change of a file's length. A shorter length loses the bytes behind it."""

    index: int
    bytes: int


@dataclass(eq=False)
class File:
    # The content that is on the disk for sure.
    durable: bytearray = field(default_factory=bytearray)
    # The changes since then, in order.
    pending: list[Write | Length] = field(default_factory=list)

    def sync(self, before: int):
        count = 0
        for change in self.pending:
            if change.index >= before:
                break
            apply(change, self.durable)
            count += 1
        del self.pending[:count]

    def newest(self) -> bytearray:
        content = bytearray(self.durable)
        for change in self.pending:
            apply(change, content)
        return content

    def left(self, forgetting: Forgetting, seed: random.Random) -> bytearray:
        """Returns the content that a power cut leaves."""
        keeps = seed.choice(forgetting.keeps_data)
        lengths = self.lengths()
        reached = chosen(len(lengths), seed.choice(forgetting.keeps_data), seed)
        content = bytearray(self.durable)
        content.extend(bytes(max(lengths) - len(content)))
        page = forgetting.page_bytes
        counts: dict[int, int] = {}
        for change in self.pending:
            if isinstance(change, Write):
                for number in pages(change, page):
                    counts[number] = counts.get(number, 0) + 1
        versions = {number: chosen(count + 1, keeps, seed) for number, count in sorted(counts.items())}
        done: dict[int, int] = {}
        length, changes = lengths[0], 0
        for change in self.pending:
            if isinstance(change, Length):
                changes += 1
                # Changes of the length take effect in their order.
                if changes <= reached and change.bytes < length:
                    content[change.bytes :] = bytes(len(content) - change.bytes)
                length = change.bytes
                continue
            if change.offset + change.bytes > length:
                changes += 1
                length = change.offset + change.bytes
            for number in pages(change, page):
                done[number] = done.get(number, 0) + 1
                if done[number] <= versions[number]:
                    from_ = max(change.offset, number * page)
                    to = min(change.offset + change.bytes, (number + 1) * page)
                    content[from_:to] = change.part(from_, to)
        del content[lengths[reached] :]
        return content

    def lengths(self) -> list[int]:
        """Returns the lengths of the file in order: the synced one, then the length after each change."""
        found = [len(self.durable)]
        for change in self.pending:
            if isinstance(change, Length):
                found.append(change.bytes)
            elif change.offset + change.bytes > found[-1]:
                found.append(change.offset + change.bytes)
        return found


@dataclass(eq=False)
class Folder:
    # The names that are on the disk for sure, and those that a program sees.
    durable: dict[str, "File | Folder"] = field(default_factory=dict)
    names: dict[str, "File | Folder"] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Change:
    """A change of one or more names: each stands for something, or (None) for nothing any more."""

    index: int
    # A rename changes two names at once.
    names: tuple[tuple[Folder, str, File | Folder | None], ...]


def apply(change: Write | Length, content: bytearray):
    if isinstance(change, Length):
        del content[change.bytes :]
        content.extend(bytes(change.bytes - len(content)))
        return
    end = change.offset + change.bytes
    if len(content) < change.offset:
        content.extend(bytes(change.offset - len(content)))
    content[change.offset : end] = change.part(change.offset, end)


def pages(change: Write, page_bytes: int) -> range:
    return range(change.offset // page_bytes, (change.offset + change.bytes - 1) // page_bytes + 1)


def chosen(count: int, keeps: float, seed: random.Random) -> int:
    """Draws which of `count` consecutive versions is left: mostly the first or the last."""
    if count == 1 or seed.random() >= keeps:
        return 0
    # With probability 1 everything is kept.
    if count == 2 or keeps == 1.0 or seed.random() < 0.6:
        return count - 1
    return seed.randrange(1, count)


class Disk:
    """The files of one folder. The entries of the journal are applied one by one."""

    def __init__(self, base: str | None = None):
        """Starts with the content of the folder `base`, which is on the disk for sure."""
        self.root = load(base) if base else Folder()
        self.played = 0
        self.files: dict[int, File] = {}
        self.syncs: dict[int, tuple[int, File | Folder]] = {}
        # The changes that no sync covers yet, in order.
        self.changes: list[Change] = []

    def play(self, entry: Entry):
        index = self.played
        self.played += 1
        match entry.kind:
            case Kind.OPEN:
                self.open(index, entry)
            case Kind.CLOSE:
                self.files.pop(entry.file, None)
            case Kind.DUP:
                self.files[entry.value] = self.files[entry.file]
            case Kind.WRITE:
                write = Write(index, entry.value, entry.bytes, entry.data)
                self.files[entry.file].pending.append(write)
            case Kind.TRUNCATE:
                self.files[entry.file].pending.append(Length(index, entry.value))
            case Kind.RENAME:
                (folder, name), (to_folder, to_name) = self.find(entry.path), self.find(entry.other)
                moved = folder.names[name]
                self.change(index, (folder, name, None), (to_folder, to_name, moved))
            case Kind.LINK:
                (folder, name), (to_folder, to_name) = self.find(entry.path), self.find(entry.other)
                self.change(index, (to_folder, to_name, folder.names[name]))
            case Kind.UNLINK | Kind.RMDIR:
                self.change(index, (*self.find(entry.path), None))
            case Kind.MKDIR:
                self.change(index, (*self.find(entry.path), Folder()))
            case Kind.SYNC_BEGIN:
                synced = self.files[entry.value] if entry.value >= 0 else self.folder(entry.path)
                self.syncs[entry.file] = (index, synced)
            case Kind.SYNC_END:
                self.synced(*self.syncs.pop(entry.file))
            case Kind.UNSUPPORTED:
                raise Unsupported(entry.path)

    def open(self, index: int, entry: Entry):
        folder, name = self.find(entry.path)
        if entry.flags & CREATED:
            self.change(index, (folder, name, File()))
        file = folder.names[name]
        assert isinstance(file, File), entry.path
        self.files[entry.file] = file
        if entry.flags & TRUNCATED:
            file.pending.append(Length(index, 0))

    def change(self, index: int, *names: tuple[Folder, str, File | Folder | None]):
        self.changes.append(Change(index, names))
        for folder, name, stands_for in names:
            put(folder.names, name, stands_for)

    def synced(self, before: int, what: File | Folder):
        if isinstance(what, File):
            what.sync(before)
            return
        left = []
        for change in self.changes:
            # A sync of either folder covers a rename between them, which is one entry of a file system's own
            # journal.
            if change.index < before and any(folder is what for folder, _, _ in change.names):
                for folder, name, stands_for in change.names:
                    put(folder.durable, name, stands_for)
            else:
                left.append(change)
        self.changes = left

    def find(self, path: str) -> tuple[Folder, str]:
        parent, _, name = path.rpartition("/")
        return self.folder(parent), name

    def folder(self, path: str) -> Folder:
        at: File | Folder = self.root
        for name in filter(None, path.split("/")):
            assert isinstance(at, Folder), path
            at = at.names[name]
        assert isinstance(at, Folder), path
        return at

    def newest(self) -> Iterator[tuple[str, bytearray | None]]:
        """Yields what programs see: paths with contents, None for a folder."""
        yield from walk(self.root, lambda folder: folder.names, File.newest)

    def left(self, forgetting: Forgetting, seed: random.Random) -> Iterator[tuple[str, bytearray | None]]:
        """Yields what a power cut leaves, in the same form."""
        keeps = seed.choice(forgetting.keeps_names)
        names: dict[Folder, dict[str, File | Folder]] = {}
        undone: set[tuple[Folder, str]] = set()
        for change in self.changes:
            keys = [(folder, name) for folder, name, _ in change.names]
            if not undone.isdisjoint(keys) or seed.random() >= keeps:
                undone.update(keys)
                continue
            for folder, name, stands_for in change.names:
                put(names.setdefault(folder, dict(folder.durable)), name, stands_for)
        yield from walk(
            self.root,
            lambda folder: names.get(folder, folder.durable),
            lambda file: file.left(forgetting, seed),
        )


def put(names: dict, name: str, stands_for: File | Folder | None):
    if stands_for is None:
        names.pop(name, None)
    else:
        names[name] = stands_for


def walk(folder: Folder, names, content, path: str = "") -> Iterator[tuple[str, bytearray | None]]:
    for name, found in sorted(names(folder).items()):
        below = f"{path}{name}"
        if isinstance(found, Folder):
            yield below, None
            yield from walk(found, names, content, below + "/")
        else:
            yield below, content(found)


def load(base: str) -> Folder:
    folder = Folder()
    for found in os.scandir(base):
        if found.is_dir(follow_symlinks=False):
            folder.durable[found.name] = load(found.path)
        else:
            with open(found.path, "rb") as file:
                folder.durable[found.name] = File(bytearray(file.read()))
    folder.names = dict(folder.durable)
    return folder


def write(left: Iterator[tuple[str, bytearray | None]], folder: str):
    """Writes these files and folders into a new folder."""
    os.makedirs(folder)
    for path, content in left:
        whole = os.path.join(folder, path)
        if content is None:
            os.mkdir(whole)
        else:
            with open(whole, "wb") as file:
                file.write(content)


def difference(newest: Iterator[tuple[str, bytearray | None]], folder: str) -> str | None:
    """Returns the first difference between the journal's result and a real folder."""
    there = {}
    for at, folders, files in os.walk(folder):
        below = os.path.relpath(at, folder)
        for name in folders + files:
            there[os.path.normpath(os.path.join(below, name))] = os.path.join(at, name)
    for path, content in newest:
        real = there.pop(path, None)
        if real is None:
            return f"{path} is in the journal and not in the folder"
        if os.path.isdir(real) != (content is None):
            return f"{path} is a folder in one of the two alone"
        if content is not None:
            with open(real, "rb") as file:
                found = file.read()
            if len(found) != len(content):
                return f"{path} has {len(found)} bytes, in the journal {len(content)}"
            if found != content:
                at = next(at for at, (a, b) in enumerate(zip(found, content)) if a != b)
                return f"{path} differs from the journal at byte {at}"
    for path in there:
        return f"{path} is in the folder and not in the journal"
    return None
