#!/usr/bin/python3
"""A TCP proxy that can lose the path between two ends without telling either of them.

    proxy.py --target PORT --log FILE

The first line on stdout is {"port": N}. Lines on stdin: `stall` (of every open connection nothing is forwarded any
more, and nothing is closed; a new connection is forwarded), `resume` (what was held is forwarded), `refuse` (new
connections are closed at once). The log has a line for each connection, `forwarded` or `refused`, and one
for each word once it is obeyed.
"""

import argparse
import json
import select
import socket
import sys
import threading


class Pair:
    def __init__(self, near, far):
        self.ends = (near, far)
        self.going = threading.Event()
        self.going.set()
        for here, there in (self.ends, self.ends[::-1]):
            threading.Thread(target=self.forward, args=(here, there), daemon=True).start()

    def forward(self, here, there):
        try:
            while True:
                select.select([here], [], [])
                self.going.wait()
                data = here.recv(65536)
                if not data:
                    break
                there.sendall(data)
        except (OSError, ValueError):
            pass
        for end in self.ends:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--target", type=int, required=True)
    parser.add_argument("--log", required=True)
    arguments = parser.parse_args()
    log = open(arguments.log, "a", buffering=1)
    listener = socket.create_server(("127.0.0.1", 0), backlog=100)
    print(json.dumps({"port": listener.getsockname()[1]}), flush=True)
    pairs = []
    refusing = threading.Event()

    def accept():
        while True:
            near, _ = listener.accept()
            if refusing.is_set():
                near.close()
                log.write("refused\n")
                continue
            pairs.append(Pair(near, socket.create_connection(("127.0.0.1", arguments.target))))
            log.write("forwarded\n")

    threading.Thread(target=accept, daemon=True).start()
    for line in sys.stdin:
        word = line.strip()
        for pair in list(pairs):
            if word == "stall":
                pair.going.clear()
            elif word == "resume":
                pair.going.set()
        if word == "refuse":
            refusing.set()
        log.write(word + "\n")


main()
