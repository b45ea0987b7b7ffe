// The store on a connection and in a transaction of the caller's.
#include <optional>
#include <utility>
#include <vector>

#include "idem/sqlite_store.hpp"
#include "open_file.hpp"
#include "schema.hpp"
#include "writer.hpp"

namespace idem {
namespace {

using sqlite::Step;

class JoinedStore final : public IdempotencyStore {
 public:
  JoinedStore(std::unique_ptr<sqlite::StoreTime> time, sqlite::Writer writer,
              Capabilities capabilities)
      : time_(std::move(time)),
        writer_(std::move(writer)),
        capabilities_(std::move(capabilities)) {}

  void insert(std::span<Insert> ops) override { write(ops); }
  void replace(std::span<Replace> ops) override { write(ops); }
  void remove(std::span<Remove> ops) override { write(ops); }
  void load(std::span<Load> ops) override {
    for (Load& op : ops) writer_.reader().load(op.key, op.answer);
  }

  result<std::uint64_t> sweep(std::size_t limit) override {
    if (auto begun = check_begun(); !begun) return begun.error();
    sqlite::Sweep sweep{limit, 0, {}};
    Step step{&sweep, {}};
    writer_.execute_inside({&step, 1});
    if (sweep.error) return *sweep.error;
    return sweep.removed;
  }

  result<Page> list(const ListQuery& query) override { return writer_.reader().list(query); }
  result<StoreStats> stats() override { return writer_.reader().stats(); }
  [[nodiscard]] const Capabilities& capabilities() const noexcept override { return capabilities_; }

 private:
  // A transaction that only reads so far would fail at its first write if somebody else has written
  // since: with SQLITE_BUSY, at once, whatever the busy timeout.
  [[nodiscard]] result<void> check_begun() {
    sqlite3* const handle = writer_.connection().handle();
    if (sqlite3_txn_state(handle, "main") == SQLITE_TXN_WRITE) return {};
    return fail(errc::invalid_argument, writer_.connection().path() +
                                            ": no write transaction is under way on this "
                                            "connection: BEGIN IMMEDIATE first");
  }

  template <class Op>
  void write(std::span<Op> ops) {
    const auto begun = check_begun();
    std::vector<Step> steps;
    for (Op& op : ops) {
      op.answer.state = Answer::State::failed;
      if (!begun)
        op.answer.error = begun.error();
      else
        steps.push_back({&op, {}});
    }
    if (!steps.empty()) writer_.execute_inside(steps);
  }

  std::unique_ptr<sqlite::StoreTime> time_;
  sqlite::Writer writer_;
  Capabilities capabilities_;
};

}  // namespace

result<StorePtr> sqlite_in_transaction(sqlite3* handle, Clock* clock) {
  if (handle == nullptr) return fail(errc::invalid_argument, "an open SQLite connection is needed");
  auto connection = sqlite::Connection::borrow(handle);
  if (auto schema = sqlite::verify_schema(connection); !schema) return schema.error();
  const auto durability = sqlite::durability_of(connection);
  if (!durability) return durability.error();
  Capabilities capabilities;
  capabilities.backend = "sqlite";
  capabilities.durability = *durability;
  capabilities.multi_process = connection.path() != ":memory:";
  capabilities.result_bytes_max = kSqliteResultBytesMax;
  auto time = std::make_unique<sqlite::StoreTime>(clock == nullptr ? system_clock() : *clock);
  auto writer = sqlite::Writer::make(std::move(connection), *time, Micros(0));
  if (!writer) return writer.error();
  return StorePtr(
      std::make_shared<JoinedStore>(std::move(time), std::move(*writer), std::move(capabilities)));
}

}  // namespace idem
