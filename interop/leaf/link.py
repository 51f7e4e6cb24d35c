"""A relay between a port and a server's port on the loopback interface, which can interrupt the connections.

After `cut`, connections are reset and new ones refused. After `stall`, connections stay open and no bytes pass,
as in a network that loses all packets.
"""

import contextlib
import select
import socket
import struct
import threading

from harness.server import port_free

RELAY_BYTES = 1 << 18
POLL_SECONDS = 0.05
# A close with this option is a reset.
RESET = struct.pack("ii", 1, 0)


class Link:
    def __init__(self, target: int):
        self.target = target
        self.port = port_free()
        self.lock = threading.Lock()
        self.pairs: set[tuple[socket.socket, socket.socket]] = set()
        self.listener: socket.socket | None = None
        self.accepted = 0
        self.bytes = 0
        self.moving = threading.Event()
        self.moving.set()
        self.ended = threading.Event()
        self.listen()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.moving.set()
        self.cut()

    def listen(self):
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", self.port))
        listener.listen(64)
        listener.settimeout(POLL_SECONDS)
        self.listener = listener
        self.acceptor = threading.Thread(target=self.accept, args=[listener], daemon=True)
        self.acceptor.start()

    def accept(self, listener: socket.socket):
        while self.listener is listener and not self.ended.is_set():
            try:
                near, _ = listener.accept()
            except TimeoutError:
                continue
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self.target), timeout=5)
            except OSError:
                near.close()
                continue
            pair = (near, far)
            with self.lock:
                if self.listener is not listener:
                    near.close()
                    far.close()
                    return
                self.accepted += 1
                self.pairs.add(pair)
            for one, other in (pair, pair[::-1]):
                one.settimeout(None)
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self.relay, args=[one, other, pair], daemon=True).start()

    def relay(self, source: socket.socket, sink: socket.socket, pair):
        with contextlib.suppress(OSError, ValueError):
            while True:
                self.moving.wait()
                ready, _, _ = select.select([source], [], [], POLL_SECONDS)
                if not ready or not self.moving.is_set():
                    if source.fileno() < 0:
                        break
                    continue
                data = source.recv(RELAY_BYTES)
                if not data:
                    break
                self.bytes += len(data)
                sink.sendall(data)
        self.drop(pair)

    def drop(self, pair):
        with self.lock:
            self.pairs.discard(pair)
        for end in pair:
            with contextlib.suppress(OSError):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def cut(self):
        listener, self.listener = self.listener, None
        if listener:
            # The kernel keeps the port until no thread waits for connections on it.
            self.acceptor.join()
            listener.close()
        with self.lock:
            pairs = list(self.pairs)
        for pair in pairs:
            self.drop(pair)

    def restore(self):
        self.moving.set()
        if self.listener is None:
            self.listen()

    def stall(self):
        self.moving.clear()
