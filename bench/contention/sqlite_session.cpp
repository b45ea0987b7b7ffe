#include "contention/sqlite_session.hpp"

#include <array>

namespace idem::bench {
namespace {

// The pauses of SQLite's own busy handler, in milliseconds.
constexpr std::array<int, 12> kPauses{1, 2, 5, 10, 15, 20, 25, 25, 25, 50, 50, 100};
constexpr int kWaitsMax = 600;  // a minute

}  // namespace

result<std::unique_ptr<SqliteSession>> SqliteSession::open(const std::string& path,
                                                           const std::string& synchronous,
                                                           Clock& clock) {
  std::unique_ptr<SqliteSession> made(new SqliteSession(clock));
  if (sqlite3_open_v2(path.c_str(), &made->handle_,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                      nullptr) != SQLITE_OK)
    return fail(errc::cannot_open, path + ": " + made->trouble());
  sqlite3_busy_handler(made->handle_, wait_for_lock, made.get());
  for (const std::string& pragma :
       {std::string("PRAGMA journal_mode=WAL"), "PRAGMA synchronous=" + synchronous}) {
    if (auto done = made->execute(pragma); !done) return done.error();
  }
  return made;
}

SqliteSession::~SqliteSession() { sqlite3_close_v2(handle_); }

int SqliteSession::wait_for_lock(void* self, int waits) {
  auto* session = static_cast<SqliteSession*>(self);
  if (waits == 0) ++session->lock_waits_;
  if (waits >= kWaitsMax) return 0;
  const auto step = std::min<std::size_t>(static_cast<std::size_t>(waits), kPauses.size() - 1);
  session->clock_.pause(std::chrono::milliseconds(kPauses[step]));
  return 1;
}

result<void> SqliteSession::execute(const std::string& sql) {
  if (sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK)
    return fail(errc::unavailable, sql + ": " + trouble());
  return {};
}

result<SqliteSession::Statement> SqliteSession::prepare(const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v3(handle_, sql.c_str(), -1, SQLITE_PREPARE_PERSISTENT, &statement,
                         nullptr) != SQLITE_OK)
    return fail(errc::cannot_open, sql + ": " + trouble());
  return Statement(statement);
}

int SqliteSession::run(sqlite3_stmt* statement) {
  const int code = sqlite3_step(statement);
  sqlite3_reset(statement);
  return code;
}

std::string sqlite_file(const Place& place) {
  const auto url = StoreUrl::parse(place.fixture.url.empty() ? place.name : place.fixture.url);
  if (!url || url->scheme() != "sqlite" || url->path() == ":memory:") return "";
  std::string path = url->path();
  if (url->has_authority() && path.starts_with('/')) path.erase(0, 1);
  return path;
}

std::string synchronous_of(const Place& place) {
  return place.fixture.store->capabilities().durability == Durability::power ? "FULL" : "NORMAL";
}

}  // namespace idem::bench
