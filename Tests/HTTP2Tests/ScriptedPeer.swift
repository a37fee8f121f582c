/// A peer over real TLS that does one wrong or awkward thing; frames are written by hand.
enum ScriptedPeer {
  static func start(_ mode: String) throws -> Server {
    try Server("python3 peer.py PORT \(mode)", script: script)
  }

  private static let script = #"""
    import socket, ssl, struct, sys, time

    port, mode = int(sys.argv[1]), sys.argv[2]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain("good.pem", "key.pem")
    context.set_alpn_protocols(["h2"])
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(8)

    def frame(kind, flags, stream, payload=b""):
        return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload

    def settings(*values):
        return frame(4, 0, 0, b"".join(struct.pack(">HI", *value) for value in values))

    def ok(stream, end=True):
        return frame(1, 5 if end else 4, stream, b"\x88")

    class Peer:
        def __init__(self, connection):
            self.connection, self.buffer, self.body = connection, b"", 0

        def exactly(self, count):
            while len(self.buffer) < count:
                more = self.connection.recv(65536)
                if not more:
                    raise EOFError
                self.buffer += more
            taken, self.buffer = self.buffer[:count], self.buffer[count:]
            return taken

        def frames(self):
            while True:
                head = self.exactly(9)
                payload = self.exactly(int.from_bytes(head[:3], "big"))
                yield head[3], head[4], int.from_bytes(head[5:9], "big"), payload

        def ended(self, answer_pings=True):
            # The streams whose requests are whole, one by one.
            for kind, flags, stream, payload in self.frames():
                if kind == 0:
                    self.body += len(payload)
                if kind in (0, 1) and flags & 1:
                    yield stream
                if kind == 6 and not flags & 1 and answer_pings:
                    self.send(frame(6, 1, 0, payload))

        def send(self, data):
            self.connection.sendall(data)

    def serve(peer):
        if mode == "mute":
            peer.exactly(1 << 20)
        peer.exactly(24)
        if mode == "slow":
            peer.send(settings((3, 100), (4, 1 << 24)) + frame(8, 0, 0, struct.pack(">I", 1 << 28)))
            time.sleep(0.3)
            streams = []
            for stream in peer.ended():
                streams.append(stream)
                if len(streams) == 60:
                    break
            if peer.body == 60 * 100_000:
                peer.send(b"".join(ok(stream) for stream in streams))
            peer.exactly(1 << 20)
        peer.send(settings((3, 10)))
        if mode == "deaf":
            time.sleep(60)
        requests = peer.ended()
        first, second = next(requests), next(requests)
        if mode == "answer-eof":
            peer.send(ok(first) + ok(second, False))
        if mode == "answer-reset":
            peer.send(ok(first) + ok(second))
        if mode in ("reset", "answer-reset"):
            peer.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if mode == "goaway":
            peer.send(frame(7, 0, 0, struct.pack(">II", first, 0) + b'{"reason":"Shutdown"}'))
            time.sleep(0.05)
            peer.send(ok(first))
            peer.exactly(1 << 20)
        if mode == "late":
            time.sleep(0.1)
            peer.send(ok(first) + ok(second))
            peer.exactly(1 << 20)
        if mode == "swallow":
            for stream in requests:
                peer.send(ok(stream))
        if mode == "text":
            peer.send(b"HTTP/1.1 400 Bad Request\r\n\r\n" * 20)
            peer.exactly(1 << 20)

    while True:
        raw, _ = listener.accept()
        try:
            # The socket moves into the object that TLS makes of it, which closes it.
            with context.wrap_socket(raw, server_side=True) as connection:
                served = Peer(connection)
                serve(served)
        except (OSError, EOFError, StopIteration):
            continue
        open("served", "w").close()
    """#
}
