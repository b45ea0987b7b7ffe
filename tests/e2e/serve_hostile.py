#!/usr/bin/env python3
"""idem serve before a real HTTP server whose connections die in the middle, under clients that send a
fifth of their requests twice, spell keys bare and quoted, and try to smuggle header lines.

  serve_hostile.py IDEM_BINARY [SECONDS]

Shows: no key is acted upon twice, every status is one that docs/http.md lists, all answers to one key
that carry a result are the same bytes, and no response has a line that the upstream did not make.
"""
import collections
import json
import os
import random
import signal
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import time

IDEM = sys.argv[1]
SECONDS = float(sys.argv[2]) if len(sys.argv) > 2 else 3.0
DEATHS = 0.03
lock = threading.Lock()
actions = collections.Counter()  # by what the body names, whatever the key's spelling


class Upstream(socketserver.StreamRequestHandler):
    """HTTP/1.1 by hand, so that its responses can be wrong on purpose."""

    def handle(self):
        while self.one():
            pass

    def one(self):
        line = self.rfile.readline()
        if not line:
            return False
        size = 0
        while (header := self.rfile.readline()) not in (b"\r\n", b""):
            name, _, value = header.partition(b":")
            if name.lower() == b"content-length":
                size = int(value)
        order = json.loads(self.rfile.read(size))
        with lock:
            actions[order["n"]] += 1
        if random.random() < DEATHS:
            return False  # acted, and gone without a word, or in the middle of one
        body = b'{"n":"%s"}' % order["n"].encode()
        head = b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\n"
        for extra in order.get("headers", []):
            head += extra.encode("latin-1") + b"\r\n"
        answer = head + b"Content-Length: %d\r\n\r\n" % len(body) + body
        if random.random() < DEATHS:
            self.wfile.write(answer[: random.randrange(1, len(answer))])
            return False
        self.wfile.write(answer)
        return True


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def handle_error(self, *_):
        pass


def ask(address, key_line, body):
    """One request on a connection of its own; the response's bytes as they come."""
    text = json.dumps(body).encode()
    with socket.create_connection(address, timeout=30) as connection:
        connection.sendall(b"POST /pay HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
                           b"Content-Length: %d\r\nIdempotency-Key: %s\r\n\r\n%s"
                           % (len(text), key_line, text))
        answer = b""
        while chunk := connection.recv(65536):
            answer += chunk
    head, _, payload = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), head, payload


ALLOWED = {201, 409, 502}  # ran or replayed; in progress or in doubt; cut


def under_load(address):
    """Statuses; and what each key's successful answers were."""
    statuses = collections.Counter()
    answers = collections.defaultdict(set)
    until = time.monotonic() + SECONDS

    def client(me):
        dice = random.Random(me)
        sent = []
        while time.monotonic() < until:
            if sent and dice.random() < 0.2:
                n = dice.choice(sent)
            else:
                n = f"c{me % 4}-{len(sent)}"  # two clients share each name: duplicates at once
                sent.append(n)
            key = n.encode() if dice.random() < 0.5 else b'"%s"' % n.encode()
            status, _, payload = ask(address, key, {"n": n})
            with lock:
                statuses[status] += 1
                if status == 201:
                    answers[n].add(payload)

    threads = [threading.Thread(target=client, args=(me,)) for me in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return statuses, answers


def hostile(address):
    """1,000 keys and 1,000 upstream headers that try to be more than they are."""
    dice = random.Random(11)
    mild = [b"%0d%0a", b"\\r\\n", b";", b":", b",", b"=", b"%00", b"<", b"'"]  # allowed in a key
    rough = [b"\r", b"\n", b"\x00", b"\x0b", b"\x85", b"\xe2\x80\xa8", b'"', b"\\", b" ", b"\t", b"\x7f",
             b"\xc3\xa9"]
    statuses = collections.Counter()
    for n in range(1000):
        name = f"h{n}"
        tricks = mild if n % 2 else mild + rough
        key = name.encode() + b"".join(dice.choice(tricks) for _ in range(4)) + b"X-Evil:1"
        if n % 3 == 0:
            key = b'"' + key.replace(b"\\", b"\\\\").replace(b'"', b"") + b'"'
        if n % 7 == 0:
            key = key.replace(b"\n", b"\r\n")  # a line of its own, in the request
        evil = "".join(dice.choice(tricks).decode("latin-1") for _ in range(2)).replace("\n", "")
        headers = [f"ETag: \"a{evil}X-Evil: 1\"", "Set-Cookie: session=1",
                   "Location: /a%0d%0aX-Evil: 1"]
        for _ in range(2):  # the second is a replay, if the first was accepted
            status, head, _ = ask(address, key, {"n": name, "headers": headers})
            statuses[status] += 1
            lines = head.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
            for line in lines:
                assert not line.lower().startswith(b"x-evil"), (key, head)
            assert b"\r" not in head.replace(b"\r\n", b"") and b"\x00" not in head, (key, head)
            if b"idempotent-replayed" in head.lower():
                assert b"session=1" not in head, head
    assert set(statuses) <= ALLOWED | {400}, statuses
    assert statuses[400] > 100 and statuses[201] > 100, statuses
    return statuses


def main():
    upstream = Server(("127.0.0.1", 0), Upstream)
    threading.Thread(target=upstream.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(prefix="idem-hostile-") as directory:
        proxy = subprocess.Popen(
            [IDEM, "serve", "--upstream", f"http://127.0.0.1:{upstream.server_address[1]}",
             "--store", "memory:", "--listen", "127.0.0.1:0"],
            cwd=directory, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "XDG_STATE_HOME": directory})
        try:
            line = proxy.stdout.readline()
            host, _, port = line.split()[2].rstrip(",").rpartition(":")
            address = (host, int(port))
            statuses, answers = under_load(address)
            tricks = hostile(address)
        finally:
            proxy.send_signal(signal.SIGTERM)
            proxy.wait(30)
            proxy.stdout.close()
    twice = [n for n, count in actions.items() if count > 1]
    differing = [n for n, bodies in answers.items() if len(bodies) > 1]
    print(f"load: {sum(statuses.values())} requests, statuses {dict(statuses)}; "
          f"hostile: {dict(tricks)}; {len(actions)} keys acted upon, {len(twice)} twice, "
          f"{len(differing)} with differing answers")
    assert set(statuses) <= ALLOWED, statuses
    assert statuses[201] > 50 and statuses[502] > 0, statuses
    assert not twice and not differing, (twice, differing)


main()
