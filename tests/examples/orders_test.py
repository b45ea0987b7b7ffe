#!/usr/bin/env python3
"""The order service as its clients, its payment provider and its crashes see it.

  orders_test.py SERVICE_BINARY sqlite|mysql      IDEM_NIGHTLY=1: 400 kills instead of 50

After every story: exactly one order, one stock decrement, one record per key, and every answer to one
request is the first one, byte for byte.
"""
import http.client
import json
import os
import pathlib
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse

BINARY = os.path.abspath(sys.argv.pop(1))
DATABASE = sys.argv.pop(1)
SERVICES = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "services"
KILLS = 200 if os.environ.get("IDEM_NIGHTLY") else 25
STOCK = 1000


class Sqlite:
    """A file in the directory of the test."""

    def __init__(self, directory):
        self.url = "sqlite:orders.db"
        self.file = os.path.join(directory, "orders.db")

    def ask(self, sql):
        connection = sqlite3.connect(self.file, timeout=30)
        try:
            with connection:
                return connection.execute(sql).fetchall()
        finally:
            connection.close()


class Mysql:
    """A database of its own on the private server of this program."""
    server = None
    made = 0

    @classmethod
    def start_server(cls, directory):
        cls.environment = {**os.environ, "IDEM_SERVICES_DIR": os.path.join(directory, "s")}
        answer = subprocess.run([SERVICES, "up", "mariadb"], env=cls.environment, check=True,
                                capture_output=True, text=True).stdout
        cls.server = urllib.parse.urlsplit(answer.split()[1]).port

    @classmethod
    def end_server(cls):
        subprocess.run([SERVICES, "down"], env=cls.environment, check=True)

    def __init__(self, _):
        Mysql.made += 1
        self.name = f"orders{Mysql.made}"
        self.url = f"mysql://root@127.0.0.1:{Mysql.server}/{self.name}"
        self.ask(f"CREATE DATABASE {self.name}", database="mysql")

    def ask(self, sql, database=None):
        answer = subprocess.run(
            ["mariadb", "--no-defaults", "-h", "127.0.0.1", "-P", str(Mysql.server), "-u", "root",
             "-N", "-B", database or self.name, "-e", sql],
            check=True, capture_output=True, text=True, timeout=60).stdout
        return [tuple(int(cell) if cell.isdigit() else cell for cell in line.split("\t"))
                for line in answer.splitlines()]


class Service:
    """The service process; may be killed and started again on the same database."""

    def __init__(self, directory, url):
        self.directory = directory
        self.url = url
        self.start()

    def start(self):
        self.process = subprocess.Popen([BINARY, "0"], cwd=self.directory, stdout=subprocess.PIPE,
                                        text=True, env={**os.environ, "ORDERS_DB": self.url})
        line = self.process.stdout.readline()
        assert line.startswith("listening"), line
        self.port = int(line.rsplit(":", 1)[1])

    def end(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait()
        self.process.stdout.close()

    def post(self, path, body, key=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            headers = {"Content-Type": "application/json"}
            if key is not None:
                headers["Idempotency-Key"] = key
            connection.request("POST", path, json.dumps(body), headers)
            response = connection.getresponse()
            return response.status, response.read(), dict(response.getheaders())
        finally:
            connection.close()

    def order(self, key, count=1):
        return self.post("/orders", {"item": "book", "count": count}, key)

    def notice(self, trade_no, seq, event, delivery):
        return self.post("/payments/notify", {"trade_no": trade_no, "seq": seq, "event": event,
                                              "notice": delivery})


class OrdersTest(unittest.TestCase):
    def setUp(self):
        self.directory = tempfile.TemporaryDirectory(prefix="idem-orders-")
        self.database = (Mysql if DATABASE == "mysql" else Sqlite)(self.directory.name)
        self.service = Service(self.directory.name, self.database.url)
        self.ask(f"INSERT INTO stock VALUES ('book', {STOCK})")

    def tearDown(self):
        self.service.end()
        self.directory.cleanup()

    def ask(self, sql):
        return self.database.ask(sql)

    def assert_orders(self, *keys):
        """These orders, once each; so much stock is gone; a record for each, all successes."""
        self.assertEqual(self.ask("SELECT trade_no FROM orders ORDER BY 1"),
                         [(key,) for key in sorted(keys)])
        self.assertEqual(self.ask("SELECT num FROM stock"), [(STOCK - len(keys),)])
        self.assertEqual(
            self.ask("SELECT idem_key, status FROM idempotent_record WHERE biz_type = 'order'"
                     " ORDER BY 1"),
            [(key, 1) for key in sorted(keys)])

    def test_the_same_key_twice(self):
        status, body, headers = self.service.order("T1")
        self.assertEqual((status, json.loads(body)["left"]), (201, STOCK - 1))
        self.assertNotIn("Idempotent-Replayed", headers)
        again, same, headers = self.service.order("T1")
        self.assertEqual((again, same), (status, body))
        self.assertEqual(headers["Idempotent-Replayed"], "true")
        self.assertEqual(self.service.order('"T1"')[:2], (status, body))
        self.assert_orders("T1")

    def test_fifty_at_once(self):
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(self.service.order("T1")[:2]))
                   for _ in range(50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(len(answers), 50)
        self.assertEqual(len(set(answers)), 1, set(answers))
        self.assertEqual(answers[0][0], 201)
        self.assert_orders("T1")

    def test_after_a_restart(self):
        first = self.service.order("T1")[:2]
        self.service.end(signal.SIGINT)
        self.service.start()
        self.assertEqual(self.service.order("T1")[:2], first)
        self.assert_orders("T1")

    def test_a_changed_body_is_refused(self):
        first = self.service.order("T1")[:2]
        status, body, _ = self.service.order("T1", count=2)
        self.assertEqual((status, json.loads(body)["code"]), (422, "key_reused"))
        self.assertEqual(self.service.order("T1")[:2], first)
        self.assertEqual(self.service.post("/orders", {"item": "book"})[0], 400)
        self.assert_orders("T1")

    def test_sold_out_is_a_result_too(self):
        self.ask("UPDATE stock SET num = 1")
        self.assertEqual(self.service.order("T1")[0], 201)
        first = self.service.order("T2")[:2]
        self.assertEqual(first[0], 409)
        self.ask("UPDATE stock SET num = 5")
        self.assertEqual(self.service.order("T2")[:2], first)
        self.assertEqual(self.ask("SELECT num FROM stock"), [(5,)])

    def test_h18_one_notice_delivered_three_times(self):
        self.service.order("T1")
        answers = [self.service.notice("T1", 1, "PAID", delivery)[:2]
                   for delivery in ("d1", "d2", "d3")]
        self.assertEqual(len(set(answers)), 1)
        self.assertEqual(json.loads(answers[0][1]), {"result": "success", "applied": True})
        self.assertEqual(self.ask("SELECT state FROM orders"), [("PAID",)])
        refunded = json.loads(self.service.notice("T1", 2, "REFUNDED", "d4")[1])
        self.assertTrue(refunded["applied"])
        self.assertEqual(self.ask("SELECT state FROM orders"), [("REFUNDED",)])

    def test_h19_late_notices_do_not_turn_the_state_back(self):
        self.service.order("T1")
        seen = []
        for seq, event in ((2, "PAID"), (1, "PAID"), (3, "REFUNDED"), (2, "PAID")):
            status, body, _ = self.service.notice("T1", seq, event, "d")
            self.assertEqual(status, 200)
            seen.append((json.loads(body)["applied"],
                         self.ask("SELECT state FROM orders")[0][0]))
        self.assertEqual(seen, [(True, "PAID"), (False, "PAID"), (True, "REFUNDED"),
                                (True, "REFUNDED")])  # the last one is a replay
        self.assertEqual(self.service.notice("T1", 2, "REFUNDED", "d")[0], 422)
        # Newer, but there is no way back from REFUNDED.
        self.assertFalse(json.loads(self.service.notice("T1", 9, "PAID", "d")[1])["applied"])
        self.assertEqual(self.ask("SELECT state FROM orders"), [("REFUNDED",)])

    def test_fifty_equal_notices_at_once(self):
        self.service.order("T1")
        answers = []
        threads = [threading.Thread(target=lambda n=n: answers.append(
            self.service.notice("T1", 1, "PAID", f"d{n}")[:2])) for n in range(50)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(set(answers), {(200, answers[0][1])})
        self.assertEqual(self.ask("SELECT state FROM orders"), [("PAID",)])

    def send_until_killed(self, send, dice):
        """Two senders at work; the service is killed at some instant after they began. Their answers.

        The instants spread over twice the time that the service needs to answer, whatever it is here:
        about half of them come too late.
        """
        answers = []
        begun = threading.Event()

        def sender():
            begun.set()
            try:
                answers.append(send())
            except (OSError, http.client.HTTPException):
                pass

        threads = [threading.Thread(target=sender) for _ in range(2)]
        for thread in threads:
            thread.start()
        begun.wait()
        time.sleep(dice.uniform(0, self.window))
        self.service.end(signal.SIGKILL)
        for thread in threads:
            thread.join()
        self.service.start()
        self.window *= 1.2 if len(answers) < 2 else 1 / 1.2
        return answers

    def test_killed_at_random_instants(self):
        seed = random.randrange(2**32)
        dice = random.Random(seed)
        cut = 0
        self.window = 0.02
        for n in range(KILLS):
            key = f"T{n:04}"
            answers = self.send_until_killed(lambda: self.service.order(key)[:2], dice)
            cut += len(answers) < 2
            answers.append(self.service.order(key)[:2])  # the client sends again
            self.assertEqual(len(set(answers)), 1, f"seed {seed}, kill {n}")
            self.assertEqual(answers[0][0], 201)
            notices = self.send_until_killed(
                lambda: self.service.notice(key, 1, "PAID", "d")[:2], dice)
            cut += len(notices) < 2
            notices.append(self.service.notice(key, 1, "PAID", "again")[:2])
            self.assertEqual(set(notices), {(200, notices[0][1])}, f"seed {seed}, kill {n}")
            self.assertTrue(json.loads(notices[0][1])["applied"])
        self.assert_orders(*(f"T{n:04}" for n in range(KILLS)))
        self.assertEqual(self.ask("SELECT DISTINCT state FROM orders"), [("PAID",)])
        print(f"{DATABASE}: {2 * KILLS} kills, {cut} of them before both answers, seed {seed}")
        self.assertGreater(cut, 0)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="idem-orders-") as scratch:
        if DATABASE == "mysql":
            Mysql.start_server(scratch)
        try:
            unittest.main()
        finally:
            if DATABASE == "mysql":
                Mysql.end_server()
