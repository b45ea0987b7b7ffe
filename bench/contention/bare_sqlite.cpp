// The articles' way without any library: INSERT into a table with a unique index, and see whether a
// row was written; each client has a connection of its own, each claim commits by itself.
#include <cstdio>

#include "contention/sqlite_session.hpp"

namespace idem::bench {
namespace {

constexpr const char* kSchema = R"sql(CREATE TABLE IF NOT EXISTS bare_record (
  id           INTEGER PRIMARY KEY,
  biz_type     TEXT NOT NULL,
  idem_key     TEXT NOT NULL,
  request_hash TEXT NOT NULL,
  status       INTEGER NOT NULL,
  create_time  INTEGER NOT NULL,
  result_json  BLOB
) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS uk_bare ON bare_record (biz_type, idem_key))sql";

// A database beside the store's, on the same disk; gone with the last asker.
struct BareFile {
  std::string path;
  explicit BareFile(std::string file) : path(std::move(file)) {}
  BareFile(const BareFile&) = delete;
  BareFile& operator=(const BareFile&) = delete;
  ~BareFile() {
    for (const char* end : {"", "-wal", "-shm"}) std::remove((path + end).c_str());
  }
};

class InsertAsker final : public Asker {
 public:
  InsertAsker(std::shared_ptr<BareFile> file, std::unique_ptr<SqliteSession> session,
              SqliteSession::Statement insert, SqliteSession::Statement update)
      : file_(std::move(file)),
        session_(std::move(session)),
        insert_(std::move(insert)),
        update_(std::move(update)) {}

  Heard claim(const Request& request) override {
    const std::uint64_t waits = session_->lock_waits();
    const std::string hash = request.fingerprint.hex();
    bind(insert_.get(), 1, request.key.tenant);
    bind(insert_.get(), 2, request.key.key);
    bind(insert_.get(), 3, hash);
    const int code = session_->run(insert_.get());
    ++costs_.trips;
    costs_.lock_waits += session_->lock_waits() - waits;
    if (code != SQLITE_DONE) {
      trouble_ = session_->trouble();
      return Heard::failed;
    }
    if (sqlite3_changes(session_->handle()) == 0) return Heard::running;
    row_ = sqlite3_last_insert_rowid(session_->handle());
    return Heard::won;
  }

  bool complete(std::string_view result) override {
    ++costs_.trips;
    sqlite3_bind_blob64(update_.get(), 1, result.data(), result.size(), SQLITE_STATIC);
    sqlite3_bind_int64(update_.get(), 2, row_);
    return session_->run(update_.get()) == SQLITE_DONE && sqlite3_changes(session_->handle()) == 1;
  }

 private:
  static void bind(sqlite3_stmt* statement, int at, const std::string& text) {
    sqlite3_bind_text(statement, at, text.data(), static_cast<int>(text.size()), SQLITE_STATIC);
  }

  std::shared_ptr<BareFile> file_;  // goes last
  std::unique_ptr<SqliteSession> session_;
  SqliteSession::Statement insert_;
  SqliteSession::Statement update_;
  std::int64_t row_ = 0;
};

result<std::unique_ptr<Asker>> enter(const std::shared_ptr<BareFile>& file,
                                     const std::string& synchronous, Clock& clock) {
  auto session = SqliteSession::open(file->path, synchronous, clock);
  if (!session) return session.error();
  if (auto made = (*session)->execute(kSchema); !made) return made.error();
  auto insert = (*session)->prepare(
      "INSERT INTO bare_record (biz_type, idem_key, request_hash, status, create_time)"
      " VALUES (?1, ?2, ?3, 0, unixepoch()) ON CONFLICT DO NOTHING");
  if (!insert) return insert.error();
  auto update = (*session)->prepare(
      "UPDATE bare_record SET status = 1, result_json = ?1 WHERE id = ?2 AND status = 0");
  if (!update) return update.error();
  return std::make_unique<InsertAsker>(file, std::move(*session), std::move(*insert),
                                       std::move(*update));
}

}  // namespace

std::vector<Contender> bare_sqlite(const Place& place, Clock& clock) {
  const std::string path = sqlite_file(place);
  if (path.empty()) return {};
  Contender bare;
  bare.name = place.name + " bare INSERT";
  bare.how = "INSERT ... ON CONFLICT DO NOTHING into a unique index, no library, autocommit";
  bare.durability = place.fixture.store->capabilities().durability;
  bare.keeps_result = false;
  const auto file = std::make_shared<BareFile>(path + ".bare");
  bare.enter = [file, synchronous = synchronous_of(place), &clock] {
    return enter(file, synchronous, clock);
  };
  return {std::move(bare)};
}

}  // namespace idem::bench
