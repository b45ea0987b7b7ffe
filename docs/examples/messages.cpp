// A message consumer that may meet every message twice, late, and be restarted in the middle.
//
//   example_messages [SEEDS [MESSAGES]]      20 seeds of 1000; with IDEM_NIGHTLY=1, 100
//
// Per message one SQLite transaction: claim, guard, business rows, result. Each message's amount
// counts once, in whatever order they come; the state of an order is that of its highest sequence
// number. The broker here redelivers a tenth, shuffles by 8 places, and crashes the consumer at
// every kind of point; afterwards the tables must equal a model that saw each message once.
#include <sqlite3.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "idem/sequence_guard.hpp"
#include "idem/service.hpp"
#include "idem/sqlite_store.hpp"

namespace {

struct Message {
  std::string order;
  std::int64_t seq = 0;
  std::int64_t amount = 0;
  std::string state;
};

struct Crash {};  // the consumer's process is gone

// Asked at every point where a process may die; a crash per `one_in` points.
class Fate {
 public:
  Fate(std::mt19937_64& random, int one_in) : random_(random), one_in_(one_in) {}
  void maybe_crash() {
    if (std::uniform_int_distribution<>(1, one_in_)(random_) == 1) throw Crash();
  }

 private:
  std::mt19937_64& random_;
  int one_in_;
};

class Database {
 public:
  Database() {
    if (sqlite3_open(":memory:", &handle_) != SQLITE_OK) throw std::runtime_error("open");
    run(idem::sqlite_schema());
    run("CREATE TABLE account (order_no TEXT PRIMARY KEY, total INTEGER, state TEXT)");
    run("CREATE TABLE effect (order_no TEXT, seq INTEGER)");  // one row per application
  }
  ~Database() { sqlite3_close(handle_); }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  void run(const std::string& sql) {
    if (sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
      throw std::runtime_error(sql + ": " + sqlite3_errmsg(handle_));
    }
  }
  std::vector<std::string> rows(const std::string& sql) {
    std::vector<std::string> lines;
    const auto add = [](void* to, int columns, char** values, char**) {
      std::string line;
      for (int i = 0; i < columns; ++i) line += (i > 0 ? "|" : "") + std::string(values[i]);
      static_cast<std::vector<std::string>*>(to)->push_back(line);
      return 0;
    };
    sqlite3_exec(handle_, sql.c_str(), add, &lines, nullptr);
    return lines;
  }
  [[nodiscard]] sqlite3* handle() const { return handle_; }

 private:
  sqlite3* handle_ = nullptr;
};

// Lives until it crashes; a new one begins with the database as it was committed.
class Consumer {
 public:
  Consumer(Database& database, Fate& fate)
      : database_(database),
        fate_(fate),
        store_(idem::sqlite_in_transaction(database.handle()).value()),
        service_(store_),
        sequences_(store_) {}

  // Returns: the broker may forget the message. Throws Crash: it will come again.
  void take(const Message& message) {
    database_.run("BEGIN IMMEDIATE");
    try {
      consume(message);
      fate_.maybe_crash();
      database_.run("COMMIT");
    } catch (const Crash&) {
      database_.run("ROLLBACK");  // as the database does for a connection that is gone
      throw;
    }
    fate_.maybe_crash();  // committed, but the broker was not told
  }

 private:
  void consume(const Message& message) {
    const std::string key = idem::KeyBuilder("PAY").add(message.order).add(message.seq).key();
    const idem::Request request{key, idem::Fingerprint::of_bytes(message.state)};
    auto claimed = service_.claim(request).value();
    auto* won = std::get_if<idem::Claimed>(&claimed);
    if (won == nullptr) return;  // it came before
    fate_.maybe_crash();
    const auto seen =
        sequences_.accept(message.order, static_cast<std::uint64_t>(message.seq)).value();
    if (std::holds_alternative<idem::Applied>(seen)) {  // else it is late: the state stays
      database_.run("INSERT INTO account VALUES ('" + message.order + "', 0, '" + message.state +
                    "') ON CONFLICT (order_no) DO UPDATE SET state = '" + message.state + "'");
    }
    fate_.maybe_crash();
    database_.run("UPDATE account SET total = total + " + std::to_string(message.amount) +
                  " WHERE order_no = '" + message.order + "'");
    database_.run("INSERT INTO effect VALUES ('" + message.order + "', " +
                  std::to_string(message.seq) + ")");
    (void)service_.complete(won->lease, "consumed").value();
  }

  Database& database_;
  Fate& fate_;
  idem::StorePtr store_;
  idem::IdempotencyService service_;
  idem::SequenceGuard sequences_;
};

struct Tally {
  std::uint64_t deliveries = 0, restarts = 0, doubles = 0, differences = 0;
};

// Every message once, in order of its sequence.
std::vector<Message> make_messages(std::mt19937_64& random, int count) {
  std::vector<Message> messages;
  std::map<std::string, std::int64_t> last;
  for (int i = 0; i < count; ++i) {
    const std::string order =
        "ORD-" + std::to_string(std::uniform_int_distribution<>(1, 40)(random));
    const std::int64_t seq = ++last[order];
    messages.push_back(
        {order, seq, std::uniform_int_distribution<>(1, 99)(random), "s" + std::to_string(seq)});
  }
  return messages;
}

// As the broker sends them: a tenth twice, each up to 8 places (a repetition up to 50) too late.
std::vector<const Message*> deliveries(std::mt19937_64& random, const std::vector<Message>& all) {
  std::vector<std::pair<double, const Message*>> places;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto at = static_cast<double>(i);
    places.emplace_back(at + std::uniform_real_distribution<>(0, 8)(random), &all[i]);
    if (std::uniform_int_distribution<>(1, 10)(random) == 1) {
      places.emplace_back(at + std::uniform_real_distribution<>(0, 50)(random), &all[i]);
    }
  }
  std::sort(places.begin(), places.end());
  std::vector<const Message*> order;
  for (const auto& [place, message] : places) order.push_back(message);
  return order;
}

void run_seed(std::uint64_t seed, int count, Tally& tally) {
  std::mt19937_64 random(seed);
  const auto messages = make_messages(random, count);
  Database database;
  Fate fate(random, 100);
  auto consumer = std::make_unique<Consumer>(database, fate);
  for (const Message* message : deliveries(random, messages)) {
    for (bool done = false; !done;) {
      ++tally.deliveries;
      try {
        consumer->take(*message);
        done = true;
      } catch (const Crash&) {
        consumer = std::make_unique<Consumer>(database, fate);
        ++tally.restarts;
      }
    }
  }
  std::map<std::string, std::pair<std::int64_t, std::string>> model;
  for (const Message& message : messages) {
    model[message.order].first += message.amount;
    model[message.order].second = message.state;
  }
  std::vector<std::string> expected;
  for (const auto& [order, held] : model) {
    expected.push_back(order + "|" + std::to_string(held.first) + "|" + held.second);
  }
  const auto applied = database.rows("SELECT order_no, seq FROM effect");
  tally.doubles +=
      database.rows("SELECT 1 FROM effect GROUP BY order_no, seq HAVING count(*) > 1").size();
  const bool equal = database.rows("SELECT * FROM account ORDER BY order_no") == expected &&
                     applied.size() == messages.size();
  if (!equal)
    std::printf("seed %llu differs from the model\n", static_cast<unsigned long long>(seed));
  tally.differences += equal ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const int usual = std::getenv("IDEM_NIGHTLY") != nullptr ? 100 : 20;
  const int seeds = argc > 1 ? std::atoi(argv[1]) : usual;
  const int count = argc > 2 ? std::atoi(argv[2]) : 1000;
  Tally tally;
  for (int seed = 1; seed <= seeds; ++seed)
    run_seed(static_cast<std::uint64_t>(seed), count, tally);
  std::printf(
      "%d seeds of %d messages: %llu deliveries, %llu restarts, %llu double applications, "
      "%llu seeds that differ from the model\n",
      seeds, count, static_cast<unsigned long long>(tally.deliveries),
      static_cast<unsigned long long>(tally.restarts),
      static_cast<unsigned long long>(tally.doubles),
      static_cast<unsigned long long>(tally.differences));
  return tally.restarts > 0 && tally.doubles == 0 && tally.differences == 0 ? 0 : 1;
}
