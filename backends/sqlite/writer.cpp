#include "writer.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "idem/clock.hpp"
#include "idem/sqlite_store.hpp"
#include "rows.hpp"

namespace idem::sqlite {
namespace {

// Bounds of one transaction: how long readers of other processes see the database as held, and how
// much the log grows at once.
constexpr std::size_t kStepsPerTransaction = 1024;
constexpr std::size_t kBytesPerTransaction = std::size_t{8} << 20;

constexpr const char* kKeyIs = " WHERE tenant = ?1 AND biz_type = ?2 AND idem_key = ?3";
// What the sweep may free: a damaged row is no free key. As damage_of(), as far as it matters to
// whether the record is over and to the version that is remembered of it.
constexpr std::string_view kUndamaged =
    " AND create_time >= 0 AND update_time >= create_time AND expires_at >= update_time"
    " AND status IN (0, 1, 2) AND version > 0 AND version < 4611686018427387904"
    " AND fence > 0 AND fence <= version";
constexpr int kRecordAt = 5;  // parameters: 1..3 the key, 4 the expected version, then the record
constexpr int kFreshAt = kRecordAt + kRecordColumnCount;

std::string insert_sql() {
  std::string values;
  for (int i = 0; i < kRecordColumnCount; ++i) values += ", ?" + std::to_string(kRecordAt + i);
  return "INSERT INTO idempotent_record (tenant, biz_type, idem_key, " +
         std::string(kRecordColumns) + ") VALUES (?1, ?2, ?3" + values +
         ") ON CONFLICT (tenant, biz_type, idem_key) DO NOTHING";
}

// The dead are not resurrected: past its expires_at a record is replaced by a fresh draft only.
std::string replace_sql() {
  std::string values;
  for (int i = 0; i < kRecordColumnCount; ++i) {
    const std::string parameter = "?" + std::to_string(kRecordAt + i);
    const bool is_create_time = i == 10;
    if (i > 0) values += ", ";
    values += is_create_time ? "iif(?20, " + parameter + ", create_time)" : parameter;
  }
  static_assert(kFreshAt == 20);
  return "UPDATE idempotent_record SET (" + std::string(kRecordColumns) + ") = (" + values + ")" +
         kKeyIs + " AND version = ?4 AND (?20 OR expires_at > ?21) RETURNING create_time";
}

void fail_step(Step& step, const Error& error) {
  std::visit(
      [&](auto* op) {
        if constexpr (requires { op->answer; }) {
          op->answer.state = Answer::State::failed;
          op->answer.error = error;
        } else {
          op->error = error;
        }
      },
      step.op);
}

std::size_t weight_of(const Step& step) {
  return std::visit(
      [](const auto* op) -> std::size_t {
        if constexpr (requires { op->draft; }) return op->draft.result.size();
        return 0;
      },
      step.op);
}

bool too_large(const Draft& draft, Answer& answer) {
  if (draft.result.size() <= kSqliteResultBytesMax) return false;
  answer.state = Answer::State::failed;
  answer.error = fail(errc::too_large, "a result of " + std::to_string(draft.result.size()) +
                                           " bytes: this store takes " +
                                           std::to_string(kSqliteResultBytesMax));
  return true;
}

std::uint64_t micros_of(Time time) {
  return static_cast<std::uint64_t>(time.time_since_epoch().count());
}

}  // namespace

void fail_all(std::span<Step> steps, const Error& error) {
  for (Step& step : steps) fail_step(step, error);
}

Writer::Writer(std::unique_ptr<Connection> connection, Reader reader, StoreTime& time,
               Micros busy_timeout)
    : connection_(std::move(connection)),
      reader_(std::move(reader)),
      time_(&time),
      busy_timeout_(busy_timeout) {}

result<Writer> Writer::make(Connection connection, StoreTime& time, Micros busy_timeout) {
  auto owned = std::make_unique<Connection>(std::move(connection));
  auto reader = Reader::make(*owned, time);
  if (!reader) return reader.error();
  Writer writer(std::move(owned), std::move(*reader), time, busy_timeout);
  if (auto prepared = writer.prepare(); !prepared) return prepared.error();
  return writer;
}

result<void> Writer::prepare() {
  const auto make = [this](Statement& statement, const std::string& sql) -> result<void> {
    auto made = connection_->prepare(sql);
    if (!made) return made.error();
    statement = std::move(*made);
    return {};
  };
  const std::pair<Statement*, std::string> all[] = {
      {&begin_, "BEGIN IMMEDIATE"},
      {&commit_, "COMMIT"},
      {&read_meta_, "SELECT time_floor, version_floor FROM idempotent_meta WHERE id = 1"},
      {&write_meta_, "UPDATE idempotent_meta SET time_floor = ?1, version_floor = ?2 WHERE id = 1"},
      {&insert_, insert_sql()},
      {&replace_, replace_sql()},
      {&remove_, std::string("DELETE FROM idempotent_record") + kKeyIs + " AND version = ?4"},
      {&sweep_,
       "DELETE FROM idempotent_record WHERE id IN (SELECT id FROM idempotent_record"
       " WHERE expires_at <= ?1" +
           std::string(kUndamaged) + " ORDER BY expires_at LIMIT ?2) RETURNING version"}};
  for (const auto& [statement, sql] : all) {
    if (auto made = make(*statement, sql); !made) return made;
  }
  return {};
}

void Writer::execute(std::span<Step> steps) {
  while (!steps.empty()) {
    std::size_t count = 0;
    std::size_t bytes = 0;
    do {
      bytes += weight_of(steps[count]);
      ++count;
    } while (count < steps.size() && count < kStepsPerTransaction && bytes < kBytesPerTransaction);
    transact(steps.first(count));
    steps = steps.subspan(count);
  }
}

// Neighbours pay nothing for being together until one of them fails in a way that undoes the whole
// transaction (a full disk, say). Then each goes again on its own, and only the guilty one fails.
void Writer::transact(std::span<Step> steps) {
  steps = begin(steps);
  if (steps.empty()) return;
  std::optional<Error> trouble = apply_all(steps);
  if (!trouble) trouble = commit();
  if (!trouble) return;
  connection_->roll_back();
  if (steps.size() == 1 || trouble->code == errc::unknown) return fail_all(steps, *trouble);
  for (Step& step : steps) transact({&step, 1});
}

// Begins the transaction and returns the steps that are in it: the others waited for another
// process for as long as they may, and are answered.
std::span<Step> Writer::begin(std::span<Step> steps) {
  while (!steps.empty()) {
    connection_->wait_until(steps.front().since + busy_timeout_);
    const int code = begin_.run();
    if (code == SQLITE_DONE) {
      const auto trouble = read_meta();
      if (!trouble) return steps;
      connection_->roll_back();
      fail_all(steps, *trouble);
      return {};
    }
    const Error error = connection_->error(code, Phase::work, "cannot write to");
    std::size_t failing = steps.size();
    if (error.code == errc::busy) {
      const Time now = system_clock().now();
      failing = 1;
      while (failing < steps.size() && steps[failing].since + busy_timeout_ <= now) ++failing;
    }
    fail_all(steps.first(failing), error);
    steps = steps.subspan(failing);
  }
  return steps;
}

std::optional<Error> Writer::read_meta() {
  wrote_ = false;
  const ResetAtExit reset(read_meta_);
  const int code = read_meta_.step();
  if (code == SQLITE_DONE)
    return fail(errc::corrupt, connection_->path() + ": idempotent_meta has lost its row");
  if (code != SQLITE_ROW) return connection_->error(code, Phase::work, "cannot read from");
  if (!is_floor(read_meta_.integer(0)) || !is_floor(read_meta_.integer(1)))
    return damaged_floor(*connection_);
  found_ = meta_ = {read_meta_.integer(0), read_meta_.version(1)};
  now_ = time_->not_before(Time(Micros(found_.time_floor)), time_->now());
  return std::nullopt;
}

// The error of a step that SQLite refused; nothing if it has its answer.
std::optional<Error> Writer::apply_one(Step& step) {
  int code = std::visit([this](auto* op) { return apply(*op); }, step.op);
  if (code == SQLITE_OK && connection_->in_transaction()) return std::nullopt;
  if (code == SQLITE_OK) code = sqlite3_extended_errcode(connection_->handle());
  return connection_->error(code, Phase::work, "cannot write to");
}

std::optional<Error> Writer::apply_all(std::span<Step> steps) {
  for (Step& step : steps) {
    auto trouble = apply_one(step);
    if (!trouble) continue;
    if (!connection_->in_transaction()) return trouble;
    fail_step(step, *trouble);
  }
  return std::nullopt;
}

std::optional<Error> Writer::write_meta() {
  if (!wrote_) return std::nullopt;
  meta_.time_floor = std::max(meta_.time_floor, now_.time_since_epoch().count());
  if (meta_ == found_) return std::nullopt;
  write_meta_.bind(1, meta_.time_floor);
  write_meta_.bind_version(2, meta_.version_floor);
  const int code = write_meta_.run();
  if (code == SQLITE_DONE) return std::nullopt;
  return connection_->error(code, Phase::work, "cannot write to");
}

std::optional<Error> Writer::commit() {
  if (auto trouble = write_meta()) return trouble;
  const int code = commit_.run();
  if (code == SQLITE_DONE) return std::nullopt;
  return connection_->error(code, wrote_ ? Phase::commit : Phase::work, "cannot commit to");
}

void Writer::execute_inside(std::span<Step> steps) {
  std::optional<Error> trouble = read_meta();
  for (Step& step : steps) {
    if (!trouble) trouble = apply_one(step);
  }
  if (!trouble) trouble = write_meta();
  if (!trouble) return;
  connection_->roll_back();
  fail_all(steps, *trouble);
}

int Writer::apply(Insert& op) {
  if (too_large(op.draft, op.answer)) return SQLITE_OK;
  const std::uint64_t version =
      std::max({meta_.version_floor + 1, micros_of(now_), op.draft.fence});
  record_of(op.draft, version, now_, now_, op.answer.held);
  bind_key(insert_, 1, op.key);
  const BoundRecord bound(insert_, kRecordAt, op.answer.held);
  const int code = insert_.run();
  if (code != SQLITE_DONE) return code;
  if (sqlite3_changes(connection_->handle()) == 0) {
    reader_.load_at(op.key, now_, op.answer);
    return SQLITE_OK;
  }
  wrote_ = true;
  op.answer.state = Answer::State::written;
  op.answer.now = now_;
  return SQLITE_OK;
}

int Writer::apply(Replace& op) {
  if (too_large(op.draft, op.answer)) return SQLITE_OK;
  const std::uint64_t version = std::max({op.expected + 1, micros_of(now_), op.draft.fence});
  record_of(op.draft, version, now_, now_, op.answer.held);
  bind_key(replace_, 1, op.key);
  replace_.bind_version(4, op.expected);
  const BoundRecord bound(replace_, kRecordAt, op.answer.held);
  replace_.bind(kFreshAt, op.draft.fresh ? 1 : 0);
  replace_.bind(kFreshAt + 1, now_);
  const int first = replace_.step();
  const bool written = first == SQLITE_ROW;
  if (written) op.answer.held.create_time = replace_.time(0);
  const int code = written ? replace_.run() : first;
  replace_.reset();
  if (code != SQLITE_DONE) return code;
  if (!written) {
    reader_.load_at(op.key, now_, op.answer);
    return SQLITE_OK;
  }
  wrote_ = true;
  op.answer.state = Answer::State::written;
  op.answer.now = now_;
  return SQLITE_OK;
}

int Writer::apply(Remove& op) {
  bind_key(remove_, 1, op.key);
  remove_.bind_version(4, op.expected);
  const int code = remove_.run();
  if (code != SQLITE_DONE) return code;
  if (sqlite3_changes(connection_->handle()) == 0) {
    reader_.load_at(op.key, now_, op.answer);
    return SQLITE_OK;
  }
  wrote_ = true;
  meta_.version_floor = std::max(meta_.version_floor, op.expected);
  op.answer.state = Answer::State::written;
  op.answer.now = now_;
  return SQLITE_OK;
}

int Writer::apply(Load& op) {
  reader_.load_at(op.key, now_, op.answer);
  return SQLITE_OK;
}

int Writer::apply(Sweep& op) {
  op.removed = 0;
  sweep_.bind(1, now_);
  sweep_.bind(2, static_cast<std::int64_t>(std::min<std::size_t>(op.limit, INT64_MAX)));
  int code = SQLITE_DONE;
  while ((code = sweep_.step()) == SQLITE_ROW) {
    ++op.removed;
    wrote_ = true;
    meta_.version_floor = std::max(meta_.version_floor, sweep_.version(0));
  }
  sweep_.reset();
  return code == SQLITE_DONE ? SQLITE_OK : code;
}

int Writer::apply(Look& op) {
  op.run(reader_);
  return SQLITE_OK;
}

}  // namespace idem::sqlite
