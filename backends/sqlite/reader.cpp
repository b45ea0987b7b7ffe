#include "reader.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "rows.hpp"

namespace idem::sqlite {
namespace {

constexpr int kFirst = 2;  // column of load_ where the record begins, behind floor and id

Answer& failed(Answer& answer, Error error) {
  answer.state = Answer::State::failed;
  answer.error = std::move(error);
  return answer;
}

// A cursor is where the page before ended: "id", or "lease_until/id" in the order of the lapsed.
struct Cursor {
  std::int64_t lease_until = INT64_MIN;
  std::int64_t id = INT64_MIN;
};

result<Cursor> parse_cursor(std::string_view text, bool lapsed) {
  Cursor cursor;
  if (text.empty()) return cursor;
  const char* at = text.data();
  const char* const end = at + text.size();
  bool good = true;
  if (lapsed) {
    const auto [next, error] = std::from_chars(at, end, cursor.lease_until);
    good = error == std::errc() && next != end && *next == '/';
    if (good) at = next + 1;
  }
  if (good) {
    const auto [next, error] = std::from_chars(at, end, cursor.id);
    good = error == std::errc() && next == end;
  }
  if (!good)
    return fail(errc::invalid_argument,
                "not a cursor of this query: give back the "
                "cursor of the page before, or none");
  return cursor;
}

std::string cursor_of(bool lapsed, Time lease_until, std::int64_t id) {
  const std::string text = std::to_string(id);
  return lapsed ? std::to_string(lease_until.time_since_epoch().count()) + "/" + text : text;
}

}  // namespace

result<Reader> Reader::make(Connection& connection, StoreTime& time) {
  Reader reader(connection, time);
  const std::string sql = "SELECT m.time_floor, r.id, " + std::string(kRecordColumns) +
                          " FROM idempotent_meta AS m LEFT JOIN idempotent_record AS r"
                          " ON r.tenant = ?1 AND r.biz_type = ?2 AND r.idem_key = ?3"
                          " WHERE m.id = 1";
  auto load = connection.prepare(sql);
  if (!load) return load.error();
  reader.load_ = std::move(*load);
  auto floor = connection.prepare("SELECT time_floor FROM idempotent_meta WHERE id = 1");
  if (!floor) return floor.error();
  reader.floor_ = std::move(*floor);
  return reader;
}

void Reader::load(KeyRef key, Answer& answer) { load_at(key, time_->now(), answer); }

void Reader::load_at(KeyRef key, Time now, Answer& answer) {
  bind_key(load_, 1, key);
  const ResetAtExit reset(load_);
  const int code = load_.step();
  if (code == SQLITE_DONE) {
    failed(answer, fail(errc::corrupt, connection_->path() + ": idempotent_meta has lost its row"));
    return;
  }
  if (code != SQLITE_ROW) {
    failed(answer, connection_->error(code, Phase::work, "cannot read from"));
    return;
  }
  if (!is_floor(load_.integer(0))) {
    failed(answer, damaged_floor(*connection_));
    return;
  }
  answer.now = time_->not_before(load_.time(0), now);
  if (load_.is_null(1)) {
    answer.state = Answer::State::absent;
    return;
  }
  if (auto read = read_record(load_, kFirst, key, answer.held); !read) {
    failed(answer, read.error());
    return;
  }
  answer.state = Answer::State::stands;
}

result<Time> Reader::now() {
  const Time seen = time_->now();
  const ResetAtExit reset(floor_);
  const int code = floor_.step();
  if (code != SQLITE_ROW) return connection_->error(code, Phase::work, "cannot read from");
  if (!is_floor(floor_.integer(0))) return damaged_floor(*connection_);
  return time_->not_before(floor_.time(0), seen);
}

result<Statement> Reader::prepare_list(const ListQuery& query) {
  std::string sql = "SELECT id, tenant, biz_type, idem_key, " + std::string(kRecordColumns) +
                    " FROM idempotent_record WHERE expires_at > ?1";
  if (query.status) sql += " AND status = ?2";
  if (query.tenant) sql += " AND tenant = ?3";
  if (query.biz_type) sql += " AND biz_type = ?4";
  if (query.lapsed_for)
    sql +=
        " AND status = 0 AND lease_until <= ?1 AND update_time <= ?5"
        " AND (lease_until, id) > (?6, ?7) ORDER BY lease_until, id";
  else
    sql += " AND id > ?7 ORDER BY id";
  sql += " LIMIT ?8";
  return connection_->prepare(sql);
}

result<Page> Reader::list(const ListQuery& query) {
  const bool lapsed = query.lapsed_for.has_value();
  const auto cursor = parse_cursor(query.cursor, lapsed);
  if (!cursor) return cursor.error();
  const auto time = now();
  if (!time) return time.error();
  auto rows = prepare_list(query);
  if (!rows) return rows.error();

  const std::size_t limit = std::clamp<std::size_t>(query.limit, 1, 1'000'000);
  rows->bind(1, *time);
  if (query.status) rows->bind(2, static_cast<std::int64_t>(*query.status));
  if (query.tenant) rows->bind_text(3, *query.tenant);
  if (query.biz_type) rows->bind_text(4, *query.biz_type);
  if (lapsed) {
    rows->bind(5, *time - *query.lapsed_for);
    rows->bind(6, cursor->lease_until);
  }
  rows->bind(7, cursor->id);
  rows->bind(8, static_cast<std::int64_t>(limit) + 1);  // one more tells whether more is there

  Page page;
  page.now = *time;
  std::int64_t last = 0;
  int code = SQLITE_DONE;
  while ((code = rows->step()) == SQLITE_ROW) {
    if (page.items.size() == limit) {
      page.cursor = cursor_of(lapsed, page.items.back().record.lease_until, last);
      return page;
    }
    last = rows->integer(0);
    Listed& item = page.items.emplace_back();
    item.key =
        Key(std::string(rows->text(1)), std::string(rows->text(2)), std::string(rows->text(3)));
    if (const auto good = check_key(item.key); !good)
      return fail(errc::corrupt, connection_->path() + ": row " + std::to_string(last) +
                                     " is damaged: " + good.error().message);
    if (auto read = read_record(*rows, 4, item.key, item.record); !read) return read.error();
  }
  if (code != SQLITE_DONE) return connection_->error(code, Phase::work, "cannot list");
  return page;
}

// The index on (expires_at, status) holds all that is counted: no result is read.
result<StoreStats> Reader::stats() {
  const auto time = now();
  if (!time) return time.error();
  auto rows = connection_->prepare(
      "SELECT status, count(*), sum(expires_at <= ?1) FROM idempotent_record GROUP BY status");
  if (!rows) return rows.error();
  rows->bind(1, *time);
  StoreStats stats;
  int code = SQLITE_DONE;
  while ((code = rows->step()) == SQLITE_ROW) {
    const auto count = static_cast<std::uint64_t>(rows->integer(1));
    switch (rows->integer(0)) {
      case 0:
        stats.processing = count;
        break;
      case 1:
        stats.success = count;
        break;
      case 2:
        stats.failed = count;
        break;
      default:
        return fail(errc::corrupt, connection_->path() + ": " + std::to_string(count) +
                                       " damaged rows, with status " +
                                       std::to_string(rows->integer(0)));
    }
    stats.expired += static_cast<std::uint64_t>(rows->integer(2));
  }
  if (code != SQLITE_DONE) return connection_->error(code, Phase::work, "cannot count");
  const auto pages = connection_->integer_of("PRAGMA page_count");
  const auto free_pages = connection_->integer_of("PRAGMA freelist_count");
  const auto page_size = connection_->integer_of("PRAGMA page_size");
  if (pages && free_pages && page_size)
    stats.bytes = static_cast<std::uint64_t>((*pages - *free_pages) * *page_size);
  return stats;
}

}  // namespace idem::sqlite
