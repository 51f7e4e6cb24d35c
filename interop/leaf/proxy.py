"""An HTTP proxy for connections to hubs, in clear or with TLS."""

import contextlib
import socket
import ssl
import threading

RELAY_BYTES = 1 << 16
HEAD_BYTES_MAX = 1 << 14


class Proxy:
    """Connects each client to the requested address, and stores the requests."""

    def __init__(self, certificate: str = "", key: str = ""):
        self.context = None
        if certificate:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(certificate, key)
        self.asked: list[bytes] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # Without a shutdown, the accepting thread would wait forever.
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                threading.Thread(target=self.serve, args=[client], daemon=True).start()

    def serve(self, client: socket.socket):
        with client, contextlib.suppress(OSError, ValueError):
            inner = self.context.wrap_socket(client, server_side=True) if self.context else client
            with inner:
                head = b""
                while not head.endswith(b"\r\n\r\n") and len(head) < HEAD_BYTES_MAX:
                    byte = inner.recv(1)
                    if not byte:
                        return
                    head += byte
                self.asked.append(head)
                host, port = head.split()[1].decode().rsplit(":", 1)
                with socket.create_connection((host, int(port))) as hub:
                    inner.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                    threading.Thread(target=self.relay, args=[hub, inner], daemon=True).start()
                    self.relay(inner, hub)

    @staticmethod
    def relay(source: socket.socket, sink: socket.socket):
        with contextlib.suppress(OSError, ValueError):
            while data := source.recv(RELAY_BYTES):
                sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)
