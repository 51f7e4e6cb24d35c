"""Keys of NATS. Ed25519 is computed as in RFC 8032, in extended coordinates: slow, and without a library."""

import base64
import hashlib
import os

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
BASE_Y = 4 * pow(5, P - 2, P) % P


def _root(y: int, sign: int) -> int:
    x2 = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(x2, (P + 3) // 8, P)
    if (x * x - x2) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    return P - x if x & 1 != sign else x


BASE_X = _root(BASE_Y, 0)
BASE = (BASE_X, BASE_Y, 1, BASE_X * BASE_Y % P)


def _add(p, q):
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * p[3] * q[3] * D % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % P, g * h % P, f * g % P, e * h % P


def _times(number: int, point=BASE):
    made = (0, 1, 1, 0)
    while number:
        if number & 1:
            made = _add(made, point)
        point = _add(point, point)
        number >>= 1
    return made


def _packed(point) -> bytes:
    inverse = pow(point[2], P - 2, P)
    x, y = point[0] * inverse % P, point[1] * inverse % P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def _crc16(data: bytes) -> int:
    crc = 0
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xFFFF
    return crc


def checked(data: bytes) -> str:
    return base64.b32encode(data + _crc16(data).to_bytes(2, "little")).decode().rstrip("=")


SEED = 18
KINDS = {"O": 14, "A": 0, "U": 20, "N": 13, "X": 23}


def b64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


class Key:
    """An nkey of one kind: `O`, `A`, `U`, `N`, or `X`. An `X` key is valid in form only."""

    def __init__(self, kind: str):
        self.seed = os.urandom(32)
        digest = hashlib.sha512(self.seed).digest()
        self.scalar = int.from_bytes(digest[:32], "little") & ~(7 | 1 << 255) | 1 << 254
        self.scalar &= (1 << 255) - 1
        self.prefix = digest[32:]
        self.raw = _packed(_times(self.scalar))
        number = KINDS[kind] << 3
        self.public = checked(bytes([number]) + self.raw)
        # The seed in the form of configurations.
        self.private = checked(bytes([SEED << 3 | number >> 5, (number & 31) << 3]) + self.seed)

    def sign(self, message: bytes) -> bytes:
        r = int.from_bytes(hashlib.sha512(self.prefix + message).digest(), "little") % L
        point = _packed(_times(r))
        k = int.from_bytes(hashlib.sha512(point + self.raw + message).digest(), "little") % L
        return point + ((r + k * self.scalar) % L).to_bytes(32, "little")

    def proves(self, **more):
        """Returns a function that makes the fields of CONNECT that prove possession of the key."""
        return lambda nonce: {"sig": b64(self.sign(nonce.encode())), **more}
