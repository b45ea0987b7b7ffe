// What is read: records, pages, counts. Prepared once per connection.
#pragma once

#include <optional>

#include "connection.hpp"
#include "idem/store.hpp"
#include "store_time.hpp"

namespace idem::sqlite {

// Used by one thread at a time, as its connection, which it borrows.
//
// The clock is looked at before the snapshot is taken, and lifted to the floor found in it: so the
// record stood there at that very time of the store.
class Reader {
 public:
  [[nodiscard]] static result<Reader> make(Connection& connection, StoreTime& time);

  void load(KeyRef key, Answer& answer);
  // As load(), but inside a transaction that has its own `now`.
  void load_at(KeyRef key, Time now, Answer& answer);
  [[nodiscard]] result<Page> list(const ListQuery& query);
  [[nodiscard]] result<StoreStats> stats();

  [[nodiscard]] Connection& connection() { return *connection_; }

 private:
  Reader(Connection& connection, StoreTime& time) : connection_(&connection), time_(&time) {}

  [[nodiscard]] result<Time> now();
  [[nodiscard]] result<Statement> prepare_list(const ListQuery& query);

  Connection* connection_;
  StoreTime* time_;
  Statement load_;  // the floor, then the record or NULLs: always one row
  Statement floor_;
};

}  // namespace idem::sqlite
