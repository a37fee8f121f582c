#!/usr/bin/python3
"""A push service that writes frames as it is told, right or wrong: what no HTTP/2 stack would let a script do.

    raw.py --certificate PEM --key PEM --script JSON --log FILE [--port N]

Port, log and the end of the process are those of peer.py. The script is read for each connection and request:

    {"hello": [step, ...],            what a connection begins with; default: empty SETTINGS
     "at": "headers" | "end",        when a request's rule is taken; default: at its end
     "credit": true,                 whether bodies are credited
     "rules": [{"request": 1, "connection": 1, "on_connection": 1, "token": "..", "do": [step, ...]}]}

The first rule whose conditions all hold is taken; without one the answer is a plain 200. Steps run in order, and
what they write leaves in one TLS record or few, at the next wait or at the end:

    {"answer": 200}                                     HEADERS with END_STREAM, or with a "body" and DATA
    {"headers": {"fields": [[":status", "200"]], "end": false, "stream": 3, "end_headers": true}}
    {"data": {"text": "..", "size": 10, "end": false}}  {"frame": {"type": 4, "flags": 0, "stream": 0, "hex": ".."}}
    {"reset": 0}  {"goaway": {"last": 1, "code": 0, "debug": ".."}}  {"settings": [[3, 100]]}  {"window": 10}
    {"bytes": "hex"}  {"repeat": {"times": 100, "do": [step, ...]}}  {"flood": {"seconds": 5, "do": [step, ...]}}
    {"wait_ms": 20}  {"hold": "/path"}  {"until_reset": 5}  {"close": true}  {"abort": true}

`stream` is the request's own unless it is given. `until_reset` waits so many seconds for the client's RST_STREAM.
"""

import argparse
import json
import os
import socket
import ssl
import struct
import sys
import threading
import time

import hpack

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RESET, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


class Server:
    def __init__(self, arguments):
        self.arguments = arguments
        self.file = open(arguments.log, "a", buffering=1)
        self.lock = threading.Lock()
        self.connections = 0
        self.requests = 0

    def log(self, event, **fields):
        with self.lock:
            self.file.write(json.dumps({"event": event, "at_ms": time.time_ns() / 1e6, **fields}) + "\n")

    def script(self):
        with open(self.arguments.script) as file:
            return json.load(file)


class Connection:
    def __init__(self, server, sock):
        self.server = server
        self.sock = sock
        self.out = bytearray()
        self.writing = threading.Lock()
        self.resets = set()
        self.open = {}
        self.count = 0
        with server.lock:
            server.connections += 1
            self.number = server.connections

    def log(self, event, **fields):
        self.server.log(event, connection=self.number, **fields)

    def run(self):
        self.log("connected", alpn=self.sock.selected_alpn_protocol())
        decoder = hpack.Decoder()
        buffer = bytearray()
        try:
            self.do(self.server.script().get("hello", [{"settings": []}]), {})
            greeted = False
            while True:
                data = self.sock.recv(65536)
                if not data:
                    break
                buffer += data
                if not greeted:
                    if len(buffer) < len(PREFACE):
                        continue
                    del buffer[: len(PREFACE)]
                    greeted = True
                while len(buffer) >= 9:
                    length = int.from_bytes(buffer[:3], "big")
                    if len(buffer) < 9 + length:
                        break
                    kind, flags = buffer[3], buffer[4]
                    stream = int.from_bytes(buffer[5:9], "big") & 0x7FFFFFFF
                    payload = bytes(buffer[9 : 9 + length])
                    del buffer[: 9 + length]
                    self.received(kind, flags, stream, payload, decoder)
            self.log("closed")
        except (OSError, ValueError) as error:
            self.log("closed", error=repr(error))
        finally:
            self.sock.close()

    def received(self, kind, flags, stream, payload, decoder):
        script = self.server.script()
        if kind == HEADERS:
            self.open[stream] = {"headers": decoder.decode(payload), "body": bytearray()}
            self.log("headers", stream=stream)
            if script.get("at") == "headers":
                self.taken(stream, script)
        elif kind == DATA and stream in self.open:
            self.open[stream]["body"] += payload
            if payload and script.get("credit", True):
                update = struct.pack(">I", len(payload))
                self.write(frame(WINDOW, 0, 0, update) + frame(WINDOW, 0, stream, update))
            if script.get("at") == "headers":
                self.log("body", stream=stream, code=len(payload))
        elif kind == SETTINGS and not flags & 1:
            self.write(frame(SETTINGS, 1, 0))
        elif kind == PING and not flags & 1:
            self.log("ping")
            if script.get("answer_pings", True):
                self.write(frame(PING, 1, 0, payload))
        elif kind == RESET:
            self.resets.add(stream)
            self.log("reset", stream=stream, code=int.from_bytes(payload, "big"))
        elif kind == GOAWAY:
            code = int.from_bytes(payload[4:8], "big")
            self.log("goaway", code=code, text=payload[8:].decode("utf-8", "replace"))
        if flags & 1 and kind in (HEADERS, DATA) and script.get("at") != "headers" and stream in self.open:
            self.taken(stream, script)

    def taken(self, stream, script):
        parts = self.open[stream]
        fields = {str(name): str(value) for name, value in parts["headers"]}
        self.count += 1
        with self.server.lock:
            self.server.requests += 1
            number = self.server.requests
        request = {
            "connection": self.number, "stream": stream, "request": number, "on_connection": self.count,
            "token": fields.get(":path", "").rsplit("/", 1)[-1],
        }
        body = bytes(parts["body"])
        self.log(
            "request", **{key: value for key, value in request.items() if key != "connection"},
            headers=[[str(name), str(value)] for name, value in parts["headers"]],
            body=body.decode("utf-8", "replace"),
        )
        steps = [{"answer": 200}]
        for rule in script.get("rules", []):
            if all(rule[name] == request[name] for name in request if name in rule):
                steps = rule["do"]
                break
        threading.Thread(target=self.quietly, args=(steps, request), daemon=True).start()

    def quietly(self, steps, request):
        try:
            self.do(steps, request)
        except OSError as error:
            self.log("broke", text=repr(error))

    def write(self, data):
        with self.writing:
            self.sock.sendall(data)

    def do(self, steps, request):
        out = bytearray()
        for step in steps:
            ((name, value),) = step.items()
            if name in ("wait_ms", "hold", "until_reset", "close", "abort", "flood"):
                if out:
                    self.write(bytes(out))
                    out.clear()
                self.pause(name, value, request)
            else:
                out += self.encode(name, value, request)
        if out:
            self.write(bytes(out))

    def pause(self, name, value, request):
        if name == "wait_ms":
            time.sleep(value / 1000)
        elif name == "hold":
            while not os.path.exists(value):
                time.sleep(0.005)
        elif name == "until_reset":
            deadline = time.monotonic() + value
            while request.get("stream") not in self.resets and time.monotonic() < deadline:
                time.sleep(0.005)
        elif name == "flood":
            once = b"".join(self.encode(*next(iter(step.items())), request) for step in value["do"])
            data = once * max(1, 65536 // len(once))
            deadline = time.monotonic() + value["seconds"]
            sent = 0
            try:
                while time.monotonic() < deadline:
                    self.write(data)
                    sent += len(data)
            finally:
                self.log("flooded", code=sent)
        elif name == "close":
            try:
                self.sock.unwrap().close()
            except (OSError, ValueError):
                self.sock.close()
        elif name == "abort":
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.sock.shutdown(socket.SHUT_RD)
            self.sock.close()

    def encode(self, name, value, request):
        stream = request.get("stream", 0)
        if isinstance(value, dict):
            stream = value.get("stream", stream)
        if name == "answer":
            if isinstance(value, int):
                value = {"status": value}
            body = value.get("body", "").encode()
            block = self.block([[":status", str(value["status"])]])
            if not body:
                return frame(HEADERS, 5, stream, block)
            return frame(HEADERS, 4, stream, block) + frame(DATA, 1, stream, body)
        if name == "headers":
            flags = (4 if value.get("end_headers", True) else 0) | (1 if value.get("end") else 0)
            return frame(HEADERS, flags, stream, self.block(value["fields"]))
        if name == "data":
            body = value.get("text", "").encode() or b"x" * value.get("size", 0)
            chunks = [body[at : at + 16384] for at in range(0, len(body), 16384)] or [b""]
            return b"".join(
                frame(DATA, 1 if value.get("end") and index == len(chunks) - 1 else 0, stream, chunk)
                for index, chunk in enumerate(chunks)
            )
        if name == "frame":
            return frame(value["type"], value.get("flags", 0), stream, bytes.fromhex(value.get("hex", "")))
        if name == "reset":
            return frame(RESET, 0, stream, struct.pack(">I", value))
        if name == "goaway":
            payload = struct.pack(">II", value.get("last", 0), value.get("code", 0))
            return frame(GOAWAY, 0, 0, payload + value.get("debug", "").encode())
        if name == "settings":
            return frame(SETTINGS, 0, 0, b"".join(struct.pack(">HI", *pair) for pair in value))
        if name == "window":
            return frame(WINDOW, 0, stream, struct.pack(">I", value))
        if name == "bytes":
            return bytes.fromhex(value)
        if name == "repeat":
            once = b"".join(self.encode(*next(iter(step.items())), request) for step in value["do"])
            return once * value["times"]
        raise SystemExit(f"raw.py: unknown step {name}")

    @staticmethod
    def block(fields):
        """Literals without indexing: they need no state, so any thread may write them at any time."""
        block = bytearray()
        for name, value in fields:
            block.append(0)
            for text in (name.encode(), value.encode("latin-1")):
                if len(text) < 127:
                    block.append(len(text))
                else:
                    rest = len(text) - 127
                    block.append(127)
                    while rest >= 128:
                        block.append(rest & 127 | 128)
                        rest >>= 7
                    block.append(rest)
                block += text
        return bytes(block)


def main():
    parser = argparse.ArgumentParser()
    for name in ("certificate", "key", "script", "log"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--port", type=int, default=0)
    server = Server(parser.parse_args())
    arguments = server.arguments
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(arguments.certificate, arguments.key)
    context.set_alpn_protocols(["h2"])
    listener = socket.create_server(("127.0.0.1", arguments.port), backlog=200)
    print(json.dumps({"port": listener.getsockname()[1]}), flush=True)

    def serve(sock):
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            Connection(server, context.wrap_socket(sock, server_side=True)).run()
        except OSError as error:
            server.log("handshake_failed", text=repr(error))

    def accept():
        while True:
            sock, _ = listener.accept()
            threading.Thread(target=serve, args=(sock,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    sys.stdin.read()


main()
