// What is written: whole batches, each in one transaction with one fsync.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "connection.hpp"
#include "idem/store.hpp"
#include "reader.hpp"
#include "store_time.hpp"

namespace idem::sqlite {

// Removes up to `limit` expired records.
struct Sweep {
  std::size_t limit = 0;
  std::uint64_t removed = 0;
  std::optional<Error> error;
};

// Something that only reads, for stores whose one connection does everything.
struct Look {
  std::function<void(Reader&)> run;
  std::optional<Error> error;  // it did not run
};

// One item of one caller.
struct Step {
  std::variant<Insert*, Replace*, Remove*, Load*, Sweep*, Look*> op;
  Time since{};  // of the system clock: when its caller came, from which busy_timeout counts
};

// Answers every step with `error`.
void fail_all(std::span<Step> steps, const Error& error);

// Used by one thread at a time. Owns the connection that writes.
class Writer {
 public:
  [[nodiscard]] static result<Writer> make(Connection connection, StoreTime& time,
                                           Micros busy_timeout);

  // Every step gets its answer: written only after the COMMIT that makes it last. A step that fails
  // leaves its neighbours alone.
  void execute(std::span<Step> steps);

  // As execute(), inside the transaction that is under way on a borrowed connection: nothing lasts
  // before its owner commits. If SQLite refuses one step, the whole transaction is rolled back:
  // business without its record must not be committed.
  void execute_inside(std::span<Step> steps);

  [[nodiscard]] Connection& connection() { return *connection_; }
  [[nodiscard]] Reader& reader() { return reader_; }

 private:
  // One row of idempotent_meta, as the transaction found it and as it will leave it.
  struct Meta {
    std::int64_t time_floor = 0;
    std::uint64_t version_floor = 0;
    friend bool operator==(const Meta&, const Meta&) = default;
  };

  Writer(std::unique_ptr<Connection> connection, Reader reader, StoreTime& time,
         Micros busy_timeout);

  [[nodiscard]] result<void> prepare();
  void transact(std::span<Step> steps);
  [[nodiscard]] std::span<Step> begin(std::span<Step> steps);
  // What went wrong, or nothing.
  [[nodiscard]] std::optional<Error> read_meta();
  [[nodiscard]] std::optional<Error> apply_one(Step& step);
  [[nodiscard]] std::optional<Error> apply_all(std::span<Step> steps);
  [[nodiscard]] std::optional<Error> write_meta();
  [[nodiscard]] std::optional<Error> commit();

  // SQLITE_OK, or the error of a step that was not applied.
  int apply(Insert& op);
  int apply(Replace& op);
  int apply(Remove& op);
  int apply(Load& op);
  int apply(Sweep& op);
  int apply(Look& op);

  std::unique_ptr<Connection> connection_;
  Reader reader_;
  StoreTime* time_;
  Micros busy_timeout_;
  Statement begin_, commit_, read_meta_, write_meta_;
  Statement insert_, replace_, remove_, sweep_;

  // Of the transaction under way.
  Time now_{};
  Meta found_;
  Meta meta_;
  bool wrote_ = false;
};

}  // namespace idem::sqlite
