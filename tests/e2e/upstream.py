#!/usr/bin/env python3
"""A service whose every action is written down: PORT LOG [DEATHS]. DEATHS is the share of requests
after whose action the connection dies without an answer."""
import http.server
import random
import socket
import socketserver
import sys
import threading

port, log_name = int(sys.argv[1]), sys.argv[2]
deaths = float(sys.argv[3]) if len(sys.argv) > 3 else 0.0
log = open(log_name, "a", buffering=1)
lock = threading.Lock()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # one write per response

    def log_message(self, *_):
        pass

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        key = self.headers.get("Idempotency-Key", "-")
        with lock:
            log.write(key + "\n")
        if random.random() < deaths:
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
            return
        body = ('{"id":"%s"}' % key).encode()
        self.send_response(201)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, *_):  # a client that went away
        pass


Server(("127.0.0.1", port), Handler).serve_forever()
