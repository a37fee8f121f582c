#!/usr/bin/python3
"""A scripted push service on Python's h2: a foreign HTTP/2 stack for the end-to-end tests.

    peer.py --certificate PEM --key PEM --script JSON --log FILE [--port N] [--no-alpn] [--address A]

The first line on stdout is {"port": N}. The peer ends when its stdin ends.

Every event is one JSON line in the log: `event`, `at_ms` (wall clock, fractional milliseconds), `connection`
(1, 2, ... in order of the TLS handshakes), and what belongs to the event. A `request` is logged when its
stream has ended on the client's side: `stream`, `request` (number on this server), `on_connection`
(number on this connection), `for_token` (number for this path), `headers` in their order, `body`.

The script is read again whenever it has changed:

    {"settings": {"max_concurrent_streams": 100, "initial_window_size": 65535},
     "window_updates": true, "answer_pings": true, "send_settings": true,
     "tokens": {"<token>": "good" | "wrong" | "dead" | "topic"},
     "rules": [{"token": "..", "request": 3, "from_request": 3, "on_connection": 1, "connection": 1,
                "for_token": 1, "topic": "..", "times": 2, "do": [step, ...]}]}

The first rule whose conditions all hold is taken, at most `times` times; without one the token's verdict
decides, and without that the answer is 200. Steps are done in order; an empty list is silence:

    {"answer": {"status": 410, "reason": "Unregistered", "fields": {"timestamp": 1}, "headers": {"a": "b"},
                "body": "raw", "body_size": 1048576, "end": true, "apns_id": true}}
    {"interim": 103}  {"wait_ms": 20}  {"hold": "/path/that/must/appear"}  {"reset": 7}
    {"goaway": {"last": 5, "code": 0, "debug": "text"}}  {"settings": {...}}
    {"close": true}  {"abort": true}  {"stall": true}  {"answer_pings": false}

A line on stdin, {"connection": N or null, "do": [...]}, does steps that need no stream, unasked.
"""

import argparse
import asyncio
import json
import os
import ssl
import sys
import time

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import h2.settings
from hyperframe.frame import GoAwayFrame, PingFrame

SETTING = {
    "max_concurrent_streams": h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS,
    "initial_window_size": h2.settings.SettingCodes.INITIAL_WINDOW_SIZE,
    "max_frame_size": h2.settings.SettingCodes.MAX_FRAME_SIZE,
    "header_table_size": h2.settings.SettingCodes.HEADER_TABLE_SIZE,
}

VERDICT = {
    "good": {"status": 200},
    "wrong": {"status": 400, "reason": "BadDeviceToken"},
    "dead": {"status": 410, "reason": "Unregistered"},
    "topic": {"status": 400, "reason": "DeviceTokenNotForTopic"},
}


class Server:
    def __init__(self, arguments):
        self.arguments = arguments
        self.log_file = open(arguments.log, "a", buffering=1)
        self.connections = {}
        self.connection_count = 0
        self.request_count = 0
        self.token_counts = {}
        self.rule_uses = {}
        self.script_stamp = None
        self.script_value = {}

    def log(self, event, **fields):
        self.log_file.write(
            json.dumps({"event": event, "at_ms": time.time_ns() / 1e6, **fields}) + "\n"
        )

    def script(self):
        """The script as it stands in its file now."""
        try:
            status = os.stat(self.arguments.script)
            stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
            if stamp != self.script_stamp:
                with open(self.arguments.script) as file:
                    self.script_value = json.load(file)
                self.script_stamp = stamp
                self.rule_uses = {}
        except FileNotFoundError:
            self.script_value = {}
        return self.script_value

    def steps(self, request):
        """What is done with a request: the first rule that fits, else the verdict on its token, else 200."""
        script = self.script()
        for index, rule in enumerate(script.get("rules", [])):
            fits = all(
                rule[name] == request[name]
                for name in ("token", "request", "on_connection", "connection", "for_token", "topic")
                if name in rule
            )
            if not fits or request["request"] < rule.get("from_request", 0):
                continue
            if "times" in rule and self.rule_uses.get(index, 0) >= rule["times"]:
                continue
            self.rule_uses[index] = self.rule_uses.get(index, 0) + 1
            return rule["do"]
        verdict = script.get("tokens", {}).get(request["token"], "good")
        return [{"answer": VERDICT[verdict]}]


class Connection(asyncio.Protocol):
    def __init__(self, server):
        self.server = server
        self.number = 0
        self.requests = {}
        self.request_count = 0
        self.unsent = {}
        self.greeted = True
        self.early = bytearray()
        self.h2 = None
        self.tasks = set()

    def log(self, event, **fields):
        self.server.log(event, connection=self.number, **fields)

    # The transport.

    def connection_made(self, transport):
        self.transport = transport
        self.server.connection_count += 1
        self.number = self.server.connection_count
        self.server.connections[self.number] = self
        tls = transport.get_extra_info("ssl_object")
        self.log(
            "connected",
            alpn=tls.selected_alpn_protocol(),
            tls=tls.version(),
            peer=list(transport.get_extra_info("peername")[:2]),
        )
        if tls.selected_alpn_protocol() != "h2":
            return
        script = self.server.script()
        config = h2.config.H2Configuration(client_side=False, header_encoding="utf-8")
        self.h2 = h2.connection.H2Connection(config=config)
        initial = {
            h2.settings.SettingCodes.MAX_CONCURRENT_STREAMS: 1000,
            h2.settings.SettingCodes.MAX_HEADER_LIST_SIZE: 8000,
        }
        for name, value in script.get("settings", {}).items():
            initial[SETTING[name]] = value
        self.h2.local_settings = h2.settings.Settings(client=False, initial_values=initial)
        if not script.get("answer_pings", True):
            self.silence_pings()
        self.greeted = script.get("send_settings", True)
        if self.greeted:
            self.h2.initiate_connection()
            self.flush()

    def silence_pings(self):
        def heard(frame):
            events = []
            if "ACK" not in frame.flags:
                event = h2.events.PingReceived()
                event.ping_data = frame.opaque_data
                events.append(event)
            return [], events

        self.h2._frame_dispatch_table[PingFrame] = heard

    def flush(self):
        if self.h2 is not None and not self.transport.is_closing():
            data = self.h2.data_to_send()
            if data:
                self.transport.write(data)

    def write_frame(self, frame):
        """Past h2's own state, which would refuse to go on after a GOAWAY."""
        self.flush()
        self.transport.write(frame.serialize())

    def data_received(self, data):
        if self.h2 is None:
            self.log("bytes_without_alpn", count=len(data))
            return
        if not self.greeted:
            # Read once it has said its SETTINGS: h2's own acknowledgement must not go before them.
            self.early += data
            self.log("early", count=len(self.early))
            return
        try:
            events = self.h2.receive_data(data)
        except h2.exceptions.ProtocolError as error:
            self.log("protocol_error", error=type(error).__name__, text=str(error))
            self.flush()
            self.transport.close()
            return
        for event in events:
            self.handle(event)
        self.flush()

    def eof_received(self):
        self.log("eof")
        return False

    def connection_lost(self, error):
        self.log("closed", error=None if error is None else str(error))
        for task in list(self.tasks):
            task.cancel()
        self.server.connections.pop(self.number, None)

    # HTTP/2.

    def handle(self, event):
        if isinstance(event, h2.events.RequestReceived):
            self.requests[event.stream_id] = {"headers": event.headers, "body": bytearray()}
            self.log("headers", stream=event.stream_id)
        elif isinstance(event, h2.events.DataReceived):
            request = self.requests.get(event.stream_id)
            if request is not None:
                request["body"] += event.data
            if self.server.script().get("window_updates", True) and event.flow_controlled_length:
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, h2.events.StreamEnded):
            self.request_ended(event.stream_id)
        elif isinstance(event, h2.events.StreamReset):
            self.log("reset", stream=event.stream_id, code=int(event.error_code))
            self.unsent.pop(event.stream_id, None)
        elif isinstance(event, h2.events.ConnectionTerminated):
            debug = (event.additional_data or b"").decode("utf-8", "replace")
            self.log("goaway", code=int(event.error_code), last=event.last_stream_id, debug=debug)
        elif isinstance(event, h2.events.PingReceived):
            self.log("ping", data=event.ping_data.hex())
        elif isinstance(event, h2.events.RemoteSettingsChanged):
            changed = {
                getattr(code, "name", str(code)): change.new_value
                for code, change in event.changed_settings.items()
            }
            self.log("settings", changed=changed)
        elif isinstance(event, h2.events.WindowUpdated):
            for stream in list(self.unsent):
                self.pump(stream)

    def request_ended(self, stream):
        server = self.server
        parts = self.requests.pop(stream)
        headers = [[name, value] for name, value in parts["headers"]]
        fields = dict(parts["headers"])
        path = fields.get(":path", "")
        token = path.rsplit("/", 1)[-1]
        server.request_count += 1
        self.request_count += 1
        server.token_counts[token] = server.token_counts.get(token, 0) + 1
        body = bytes(parts["body"])
        request = {
            "connection": self.number,
            "stream": stream,
            "request": server.request_count,
            "on_connection": self.request_count,
            "for_token": server.token_counts[token],
            "token": token,
            "topic": fields.get("apns-topic"),
            "apns_id": fields.get("apns-id"),
        }
        text = body.decode("utf-8", "backslashreplace")
        server.log("request", **request, headers=headers, body=text, body_hex=body.hex())
        steps = server.steps(request)
        task = asyncio.get_running_loop().create_task(self.do(steps, request))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def do(self, steps, request):
        for step in steps:
            ((name, value),) = step.items()
            try:
                if name == "wait_ms":
                    await asyncio.sleep(value / 1000)
                elif name == "hold":
                    while not os.path.exists(value):
                        await asyncio.sleep(0.005)
                else:
                    self.step(name, value, request)
            except (h2.exceptions.ProtocolError, KeyError) as error:
                self.log("step_failed", step=name, error=type(error).__name__, text=str(error))
        self.flush()

    def step(self, name, value, request):
        stream = request.get("stream")
        if name == "answer":
            self.answer(value, request)
        elif name == "interim":
            self.h2.send_headers(stream, [(":status", str(value)), ("link", "</hint>; rel=preload")])
        elif name == "reset":
            self.unsent.pop(stream, None)
            try:
                # Through h2, so that it counts the stream as closed.
                self.h2.reset_stream(stream, error_code=value)
            except h2.exceptions.ProtocolError:
                self.write_frame(RstStreamFrame(stream, error_code=value))
            self.log("sent_reset", stream=stream, code=value)
        elif name == "goaway":
            last = value.get("last", self.h2.highest_inbound_stream_id)
            frame = GoAwayFrame(0, last_stream_id=last, error_code=value.get("code", 0))
            frame.additional_data = value.get("debug", "").encode()
            self.write_frame(frame)
            self.log("sent_goaway", last=last, code=value.get("code", 0))
        elif name == "settings":
            if self.greeted:
                self.h2.update_settings({SETTING[key]: number for key, number in value.items()})
            else:
                self.greeted = True
                self.h2.initiate_connection()
                self.flush()
                self.data_received(bytes(self.early))
        elif name == "close":
            self.flush()
            self.transport.close()
        elif name == "abort":
            self.flush()
            self.transport.abort()
        elif name == "stall":
            self.transport.pause_reading()
        elif name == "answer_pings":
            if not value:
                self.silence_pings()
        else:
            raise SystemExit(f"peer.py: unknown step {name}")
        self.flush()

    def answer(self, answer, request):
        stream = request["stream"]
        status = answer.get("status", 200)
        headers = [(":status", str(status))]
        if answer.get("apns_id", True) and request["apns_id"]:
            headers.append(("apns-id", request["apns_id"]))
        body = b""
        if "body" in answer:
            body = answer["body"].encode()
        elif "body_size" in answer:
            body = b"x" * answer["body_size"]
        elif "reason" in answer or "fields" in answer:
            reason = {"reason": answer["reason"]} if "reason" in answer else {}
            body = json.dumps({**reason, **answer.get("fields", {})}).encode()
            headers.append(("content-type", "application/json"))
        headers += [(name, str(value)) for name, value in answer.get("headers", {}).items()]
        ends = answer.get("end", True)
        self.h2.send_headers(stream, headers, end_stream=ends and not body)
        if body:
            self.unsent[stream] = [body, ends]
            self.pump(stream)
        self.log("answer", stream=stream, status=status, reason=answer.get("reason"))

    def pump(self, stream):
        body, ends = self.unsent[stream]
        try:
            while body:
                room = min(
                    self.h2.local_flow_control_window(stream),
                    self.h2.max_outbound_frame_size,
                    len(body),
                )
                if room <= 0:
                    break
                self.h2.send_data(stream, body[:room], end_stream=ends and room == len(body))
                body = body[room:]
        except h2.exceptions.ProtocolError:
            body = b""
        if body:
            self.unsent[stream] = [body, ends]
        else:
            del self.unsent[stream]
        self.flush()


async def commands(server):
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        command = json.loads(line)
        wanted = command.get("connection")
        for number, connection in list(server.connections.items()):
            if wanted is None or wanted == number:
                await connection.do(command["do"], {})


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--certificate", required=True)
    parser.add_argument("--key", required=True)
    parser.add_argument("--script", required=True)
    parser.add_argument("--log", required=True)
    parser.add_argument("--address", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--no-alpn", action="store_true")
    server = Server(parser.parse_args())
    arguments = server.arguments
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(arguments.certificate, arguments.key)
    if not arguments.no_alpn:
        context.set_alpn_protocols(["h2"])
    loop = asyncio.get_running_loop()

    def failed(_, details):
        error = details.get("exception")
        server.log("handshake_failed", text=f"{details.get('message')}: {error!r}")

    loop.set_exception_handler(failed)
    listener = await loop.create_server(
        lambda: Connection(server), arguments.address, arguments.port, ssl=context, backlog=200
    )
    print(json.dumps({"port": listener.sockets[0].getsockname()[1]}), flush=True)
    await commands(server)


asyncio.run(main())
