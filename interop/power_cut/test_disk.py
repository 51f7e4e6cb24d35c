"""Tests of the test: does the library record every call, and does the disk forget what it may and nothing else?

Python uses the C library, so a small Python program takes the place of the server.
"""

import os
import random
import subprocess
import sys

from harness.checks import check, equal

from power_cut import disk, journal
from power_cut.disk import MODES, Disk

EVERY_CALL = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
os.makedirs("a/b")
file = os.open("a/b/one", os.O_RDWR | os.O_CREAT, 0o644)
os.write(file, b"first ")
os.writev(file, [b"sec", b"ond ", b"third "])
os.pwrite(file, b"FIRST", 0)
os.pwritev(file, [b"x" * 5000, b"y" * 5000], 10_000)
os.pwrite(file, bytes(9000), 30_000)
os.ftruncate(file, 25_000)
os.posix_fallocate(file, 0, 40_000)
copy = os.dup(file)
os.close(file)
os.pwrite(copy, b"by the copy", 50)
os.fdatasync(copy)
more = os.open("a/two", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
os.write(more, b"appended, ")
os.write(more, b"twice")
os.close(more)
os.open("a/two", os.O_WRONLY | os.O_TRUNC)
target = os.open("a/three", os.O_RDWR | os.O_CREAT, 0o644)
os.sendfile(target, copy, 0, 20_000)
os.copy_file_range(copy, target, 3_000, 100, 25_000)
os.rename("a/three", "a/b/four")
os.link("a/b/four", "a/five")
os.unlink("a/b/four")
os.mkdir("gone")
os.rmdir("gone")
folder = os.open("a", os.O_RDONLY)
there = os.open("relative", os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=folder)
os.write(there, b"below a")
os.rename("relative", "moved", src_dir_fd=folder, dst_dir_fd=folder)
os.fsync(folder)
with open("buffered", "w") as written:
    written.write("through a buffer\\n" * 1000)
"""

# `test_the_disk_forgets` checks what may remain of each file.
SOME_SYNCS = """
import os
def file(name, data, is_synced):
    written = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.write(written, data)
    if is_synced:
        os.fsync(written)
    os.close(written)
def sync(folder):
    opened = os.open(folder, os.O_RDONLY)
    os.fsync(opened)
    os.close(opened)
os.mkdir("f")
file("f/safe", b"s" * 20_000, True)
file("f/old", b"old", True)
sync("f")
sync(".")
file("f/unsynced", b"u" * 20_000, False)
file("f/unnamed", b"n" * 20_000, True)
file("f/new", b"new", True)
os.rename("f/new", "f/old")
written = os.open("f/safe", os.O_WRONLY)
os.pwrite(written, b"S" * 20_000, 0)
"""


def watched(library: str, folder: str, program: str) -> list[journal.Entry]:
    root, path = os.path.join(folder, "root"), os.path.join(folder, "journal")
    os.makedirs(root)
    environment = os.environ | {"LD_PRELOAD": library, "FORGETFUL_ROOT": root, "FORGETFUL_JOURNAL": path}
    subprocess.run([sys.executable, "-c", program], cwd=root, env=environment, check=True)
    return journal.read(path)


def test_every_call_is_noted(library: str, folder: str):
    entries = watched(library, folder, EVERY_CALL)
    played = Disk()
    for entry in entries:
        played.play(entry)
    equal(disk.difference(played.newest(), os.path.join(folder, "root")), None, "difference")


def test_the_disk_forgets(library: str, folder: str):
    entries = watched(library, folder, SOME_SYNCS)
    played = Disk()
    for entry in entries:
        played.play(entry)
    seen: dict[str, set] = {}
    for number in range(400):
        mode = MODES[number % len(MODES)]
        found = played.left(mode, random.Random(number))
        left = {path: None if content is None else bytes(content) for path, content in found}
        for path in ("f/safe", "f/old", "f/unsynced", "f/unnamed", "f/new"):
            seen.setdefault(path, set()).add(left.get(path))
        safe = left["f/safe"]
        check(safe is not None and len(safe) == 20_000, "a synced length is lost")
        for from_ in range(0, 20_000, mode.page_bytes):
            check(len(set(safe[from_ : from_ + mode.page_bytes])) == 1, "a page is torn")
        check(left["f/old"] in (b"old", b"new"), f"a rename is half done: {left['f/old']!r}")
    equal(seen["f/old"], {b"old", b"new"}, "contents of the renamed file")
    equal(seen["f/unnamed"], {None, b"n" * 20_000}, "a file that was synced, and its folder not")
    unsynced = seen["f/unsynced"]
    check({None, b"u" * 20_000} <= unsynced, "an unsynced file is always or never there")
    check(any(content and len(set(content)) == 2 for content in unsynced), "no page of an unsynced file is lost")
    check(len(seen["f/safe"]) > 10, "too few different contents of a file that was written over")
