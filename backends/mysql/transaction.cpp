// The store on a connection and in a transaction of the caller's.
//
// One record at a time: behind a deadlock, which ends the transaction, no write of ours may follow
// in the same exchange, because it would be committed alone.
#include "admin.hpp"
#include "idem/mysql_transaction.hpp"
#include "schema.hpp"
#include "work.hpp"

namespace idem {
namespace mysql {
namespace {

constexpr Micros kNoLimit = std::chrono::hours(24);  // the caller's connection has none

class JoinedStore final : public IdempotencyStore {
 public:
  JoinedStore(std::unique_ptr<Session> session, const MysqlTransactionOptions& options,
              Capabilities capabilities)
      : session_(std::move(session)),
        table_(options.table),
        clock_(options.clock != nullptr ? *options.clock : system_clock()),
        capabilities_(std::move(capabilities)),
        set_wait_(
            "SET @idem_wait = @@SESSION.innodb_lock_wait_timeout, "
            "SESSION innodb_lock_wait_timeout = " +
            std::to_string(options.row_wait.micros() / std::chrono::seconds(1))) {}

  void insert(std::span<Insert> ops) override { each(ops, &JoinedStore::insert_one); }
  void replace(std::span<Replace> ops) override { each(ops, &JoinedStore::replace_one); }
  void load(std::span<Load> ops) override { each(ops, &JoinedStore::load_one); }
  void remove(std::span<Remove> ops) override {
    for (Remove& op : ops) answer_failed(op.answer, unsupported());
  }
  result<std::uint64_t> sweep(std::size_t) override { return unsupported(); }
  result<Page> list(const ListQuery& query) override {
    const Budget budget(kNoLimit);
    return mysql::list(work(budget), query);
  }
  result<StoreStats> stats() override {
    const Budget budget(kNoLimit);
    return mysql::stats(work(budget));
  }
  [[nodiscard]] const Capabilities& capabilities() const noexcept override { return capabilities_; }

 private:
  [[nodiscard]] Work work(const Budget& budget) {
    return {
        *session_, table_, shared_, budget, TimeSource::of(clock_), capabilities_.result_bytes_max};
  }

  [[nodiscard]] static Error unsupported() {
    return fail(errc::unsupported,
                "inside a transaction of yours nothing is removed: roll it back instead, or use a "
                "store of its own");
  }

  template <class Op>
  void each(std::span<Op> ops, Fault (JoinedStore::*one)(const Work&, Op&)) {
    const Budget budget(kNoLimit);
    for (Op& op : ops) {
      if (auto begun = check_begun(budget); !begun) {
        answer_failed(op.answer, begun.error());
        continue;
      }
      Fault fault;
      try {
        fault = (this->*one)(work(budget), op);
      } catch (const std::exception& error) {
        fault = {Fault::Kind::broken, true, false, fail(errc::unknown, error.what())};
      }
      if (fault) answer_failed(op.answer, undone(std::move(fault), budget));
    }
  }

  // Only inside a transaction is there still a savepoint to be released.
  [[nodiscard]] result<void> check_begun(const Budget& budget) {
    Exchange exchange(*session_, budget);
    exchange.add("SAVEPOINT idem_begun");
    const std::size_t release = exchange.add("RELEASE SAVEPOINT idem_begun");
    if (Fault fault = exchange.run())
      return fail(errc::unavailable, std::move(fault.error.message));
    if (!exchange.fault(release, "savepoint")) return {};
    return fail(errc::invalid_argument,
                "no transaction is under way on this connection: BEGIN first");
  }

  // After a deadlock or a wait nothing of the transaction may be committed.
  [[nodiscard]] Error undone(Fault fault, const Budget& budget) {
    if (fault.kind != Fault::Kind::again && fault.kind != Fault::Kind::waited)
      return std::move(fault.error);
    Exchange exchange(*session_, budget);
    exchange.add("ROLLBACK");
    exchange.add("START TRANSACTION READ ONLY");
    (void)exchange.run();  // a broken connection commits nothing either
    return fail(errc::busy,
                fault.error.message + "; the whole transaction was rolled back: run it again");
  }

  // The statements of `add`, with our limit of the wait for a row.
  template <class Add>
  [[nodiscard]] Fault run(Exchange& exchange, Add add) {
    exchange.add(set_wait_);
    add();
    exchange.add("SET SESSION innodb_lock_wait_timeout = @idem_wait");
    return exchange.run();
  }

  std::size_t add_read(const Work& on, Exchange& exchange, KeyRef key) {
    const Item item{key, nullptr};
    return add_reads(on, exchange, {&item, 1}, Statement::load_locked);
  }

  // `stands` with what was read, or `absent`.
  [[nodiscard]] Fault take(Exchange& exchange, std::size_t read, Answer& answer,
                           std::uint64_t& floor) {
    if (Fault fault = exchange.fault(read, "read back")) return fault;
    const auto rows = exchange.results(read).rows();
    answer.state = Answer::State::absent;
    if (rows.empty()) return {};
    const RowHead head = read_head(rows[0]);
    floor = head.floor;
    answer.now = head.now;
    answer.state = Answer::State::stands;
    if (auto record = read_record(rows[0], answer.held); !record)
      answer_failed(answer, record.error());
    return {};
  }

  Fault insert_one(const Work& on, Insert& op) {
    if (!fits(on, op.draft, op.answer)) return {};
    const DraftText text(op.draft);
    Exchange exchange(*session_, on.budget);
    std::size_t row = 0;
    std::size_t refresh = 0;
    std::size_t read = 0;
    const Fault broken = run(exchange, [&] {
      Fields fields;
      add_joined_insert(fields, op, text, on.time, shared_.floor.load(std::memory_order_relaxed));
      row = exchange.add(Statement::joined_insert, 1, fields);
      fields.clear();
      add_is_claim(fields, op.draft);
      add_time(fields, on.time);
      add_time(fields, on.time);
      add_key(fields, op.key);
      refresh = exchange.add(Statement::refresh_fence, 1, fields);
      read = add_read(on, exchange, op.key);
    });
    if (broken) return broken;
    const Fault refused = exchange.fault(row, "insert");
    if (refused && refused.kind != Fault::Kind::duplicate) return refused;
    if (Fault fault = exchange.fault(refresh, "refresh the fence")) return fault;
    std::uint64_t floor = 0;
    if (Fault fault = take(exchange, read, op.answer, floor)) return fault;
    if (op.answer.state == Answer::State::failed) return {};
    if (op.answer.state == Answer::State::absent) {
      return {Fault::Kind::again, false, false,
              fail(errc::busy, "insert: refused by a record that then was gone")};
    }
    if (refused) return {};
    op.answer.state = Answer::State::written;
    op.answer.now = op.answer.held.update_time;
    shared_.raise_floor(floor);
    return op.answer.held.version > floor ? Fault{} : lift(on, op, floor + 1);
  }

  // A removed record may have had a larger version. Nobody sees ours before the commit.
  Fault lift(const Work& on, Insert& op, std::uint64_t version) {
    Exchange exchange(*session_, on.budget);
    Fields fields;
    add_is_claim(fields, op.draft);
    fields.emplace_back(version);
    fields.emplace_back(version);
    add_key(fields, op.key);
    exchange.add(Statement::lift_fence, 1, fields);
    if (Fault fault = exchange.run()) return fault;
    if (Fault fault = exchange.fault(0, "lift the fence")) return fault;
    op.answer.held.version = version;
    if (op.draft.fence == 0) op.answer.held.fence = version;
    return {};
  }

  Fault replace_one(const Work& on, Replace& op) {
    if (!fits(on, op.draft, op.answer)) return {};
    const DraftText text(op.draft);
    Exchange exchange(*session_, on.budget);
    std::size_t update = 0;
    std::size_t read = 0;
    std::size_t clock = 0;
    const Fault broken = run(exchange, [&] {
      Fields fields;
      add_replace(fields, op, text, on.time);
      update = exchange.add(Statement::joined_replace, 1, fields);
      read = add_read(on, exchange, op.key);
      clock = add_clock(on, exchange);
    });
    if (broken) return broken;
    if (Fault fault = exchange.fault(update, "replace")) return fault;
    if (Fault fault = take_with_clock(exchange, read, clock, op.answer)) return fault;
    if (exchange.affected(update) == 0 || op.answer.state != Answer::State::stands) return {};
    op.answer.state = Answer::State::written;
    op.answer.now = op.answer.held.update_time;
    return {};
  }

  Fault load_one(const Work& on, Load& op) {
    Exchange exchange(*session_, on.budget);
    std::size_t read = 0;
    std::size_t clock = 0;
    const Fault broken = run(exchange, [&] {
      read = add_read(on, exchange, op.key);
      clock = add_clock(on, exchange);
    });
    if (broken) return not_applied(broken);
    return take_with_clock(exchange, read, clock, op.answer);
  }

  static std::size_t add_clock(const Work& on, Exchange& exchange) {
    Fields fields;
    add_time(fields, on.time);
    return exchange.add(Statement::clock, 1, fields);
  }

  // As take(), and `absent` has a time, too.
  [[nodiscard]] Fault take_with_clock(Exchange& exchange, std::size_t read, std::size_t clock,
                                      Answer& answer) {
    std::uint64_t floor = 0;
    if (Fault fault = take(exchange, read, answer, floor)) return fault;
    if (answer.state != Answer::State::absent) return {};
    if (Fault fault = exchange.fault(clock, "clock")) return fault;
    const auto rows = exchange.results(clock).rows();
    if (!rows.empty()) answer.now = Time{Micros(signed_of(rows[0][0]))};
    return {};
  }

  std::unique_ptr<Session> session_;
  std::string table_;
  Clock& clock_;
  Capabilities capabilities_;
  Shared shared_;
  std::string set_wait_;
};

// What the session is set to, by name: the servers' versions name the isolation differently.
result<void> check_session(Session& session, const Budget& budget) {
  const auto found = query(session,
                           "SHOW SESSION VARIABLES WHERE Variable_name IN ('sql_mode', "
                           "'transaction_isolation', 'tx_isolation')",
                           {}, budget);
  if (!found) return found.error();
  for (const auto row : found->rows()) {
    const std::string_view name = bytes_of(row[0]);
    const std::string value(bytes_of(row[1]));
    if (name != "sql_mode") {
      if (value == "READ-COMMITTED" || value == "REPEATABLE-READ") continue;
      return fail(errc::invalid_argument, "isolation level " + value +
                                              ": SET SESSION TRANSACTION ISOLATION LEVEL READ "
                                              "COMMITTED (or REPEATABLE READ) first");
    }
    if (value.find("STRICT_") == value.npos || value.find("SIMULTANEOUS") != value.npos) {
      return fail(errc::invalid_argument,
                  "sql_mode '" + value +
                      "': what does not fit would be cut; SET SESSION sql_mode = "
                      "'STRICT_ALL_TABLES' first (without SIMULTANEOUS_ASSIGNMENT)");
    }
  }
  return {};
}

result<Capabilities> capabilities_of(Session& session, const Budget& budget) {
  const auto found = query(session, "SELECT VERSION(), @@max_allowed_packet", {}, budget);
  if (!found) return found.error();
  const auto durable = durability(session, budget);
  if (!durable) return durable.error();
  const std::string version(bytes_of(found->rows().at(0)[0]));
  Capabilities capabilities;
  capabilities.backend = backend_name(version);
  capabilities.durability = *durable;
  capabilities.multi_process = true;
  capabilities.server_clock = true;
  capabilities.result_bytes_max = result_bytes_max(unsigned_of(found->rows().at(0)[1]));
  return capabilities;
}

}  // namespace
}  // namespace mysql

result<StorePtr> mysql_in_transaction(boost::mysql::any_connection& connection,
                                      const MysqlTransactionOptions& options) {
  if (!mysql::is_table_name(options.table)) {
    return fail(errc::invalid_argument,
                "'table' is 1 to 48 letters, digits and _, not '" + options.table + "'");
  }
  if (options.row_wait.micros() < std::chrono::seconds(1) ||
      options.row_wait.micros() % std::chrono::seconds(1) != Micros(0)) {
    return fail(errc::invalid_argument, "'row_wait' is a number of whole seconds, from 1s on");
  }
  const mysql::Budget budget(mysql::kNoLimit);
  auto session = mysql::Session::borrow(connection, options.table);
  if (auto checked = mysql::check_session(*session, budget); !checked) return checked.error();
  const auto layout = mysql::check_records(*session, options.table, budget);
  if (!layout) return layout.error();
  if (!*layout) {
    return fail(errc::cannot_open, "there is no table '" + options.table +
                                       "' in this connection's database; open_mysql() makes it");
  }
  auto capabilities = mysql::capabilities_of(*session, budget);
  if (!capabilities) return capabilities.error();
  return StorePtr(
      std::make_shared<mysql::JoinedStore>(std::move(session), options, std::move(*capabilities)));
}

}  // namespace idem
