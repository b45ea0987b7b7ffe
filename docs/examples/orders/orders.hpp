// The order service: orders that take stock, and a payment provider that calls back, twice, late,
// or at once with itself.
//
//   POST /orders           Idempotency-Key: T1    {"item":"book","count":1}
//   POST /payments/notify  {"trade_no":"T1","seq":2,"event":"PAID","notice":"d1"}
//
// Every request is one transaction: claim, business rows and result become true together or not
// at all. A crash between them leaves nothing; the sender sends again.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "database.hpp"
#include "idem/http.hpp"
#include "idem/sequence_guard.hpp"

namespace orders {

struct Reply {
  int status = 200;
  std::string body;  // JSON
};

// What one request works with. Used by one thread at a time.
struct Session {
  explicit Session(const std::string& url);

  std::unique_ptr<Database> database;
  std::shared_ptr<idem::IdempotencyService> service;
  idem::http::Guard guard;
  idem::SequenceGuard sequences;
};

// A connection each for as many requests as run at once.
class Sessions {
 public:
  explicit Sessions(std::string url) : url_(std::move(url)) {}
  // Runs `unit` in a transaction of its own, as Database::transact does.
  void transact(const std::function<bool(Session&)>& unit);

 private:
  const std::string url_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Session>> idle_;
};

// Business, inside the transaction. The guard runs this at most once per key.
[[nodiscard]] Reply create_order(Database& database, const std::string& trade_no,
                                 const std::string& body);

// Its key is made from business facts: delivery id and time change at every repetition.
[[nodiscard]] Reply take_notice(Session& session, const std::string& body);

}  // namespace orders
