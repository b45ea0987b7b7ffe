// Shared by the tests of the SQLite store.
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "idem/sqlite_store.hpp"

namespace idem {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

// A directory of its own, gone at the end.
class TempDir {
 public:
  TempDir() {
    std::string pattern = (std::filesystem::temp_directory_path() / "idem-test-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) std::abort();
    path_ = pattern;
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  [[nodiscard]] std::string file(std::string_view name = "t.db") const {
    return (path_ / name).string();
  }
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

inline StorePtr open_or_die(const std::string& path, Clock* clock = nullptr,
                            Duration busy_timeout = seconds(5)) {
  SqliteOptions options;
  options.path = path;
  options.clock = clock;
  options.busy_timeout = busy_timeout;
  auto store = open_sqlite(options);
  if (!store) {
    ADD_FAILURE() << store.error().message;
    std::abort();
  }
  return *store;
}

inline Draft claim_draft(Duration lease = seconds(600)) {
  Draft draft;
  draft.request_hash = Fingerprint::of_bytes("request");
  draft.owner = Owner::random();
  draft.lease = lease;
  draft.keep = hours(24);
  return draft;
}

// What completes `held` with `result`, which is borrowed.
inline Draft success_draft(const Record& held, std::string_view result) {
  Draft draft;
  draft.request_hash = held.request_hash;
  draft.owner = held.owner;
  draft.fence = held.fence;
  draft.attempt = held.attempt;
  draft.status = Status::success;
  draft.fresh = false;
  draft.keep = hours(24);
  draft.result = result;
  return draft;
}

inline Answer insert(IdempotencyStore& store, KeyRef key, const Draft& draft = claim_draft()) {
  Insert op{key, draft, {}};
  store.insert({&op, 1});
  return op.answer;
}

inline Answer replace(IdempotencyStore& store, KeyRef key, std::uint64_t expected,
                      const Draft& draft) {
  Replace op{key, expected, draft, {}};
  store.replace({&op, 1});
  return op.answer;
}

inline Answer load(IdempotencyStore& store, KeyRef key) {
  Load op{key, {}};
  store.load({&op, 1});
  return op.answer;
}

inline Answer remove(IdempotencyStore& store, KeyRef key, std::uint64_t expected) {
  Remove op{key, expected, {}};
  store.remove({&op, 1});
  return op.answer;
}

// Answers compare by their state; a failure shows its error.
inline std::string word(const Answer& answer) {
  switch (answer.state) {
    case Answer::State::written:
      return "written";
    case Answer::State::stands:
      return "stands";
    case Answer::State::absent:
      return "absent";
    case Answer::State::failed:
      break;
  }
  return std::string(to_string(answer.error.code));
}

// A plain connection to the same file, as another program would have it.
class RawConnection {
 public:
  explicit RawConnection(const std::string& path) {
    if (sqlite3_open(path.c_str(), &handle_) != SQLITE_OK) std::abort();
  }
  ~RawConnection() { sqlite3_close(handle_); }
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;

  int run(const std::string& sql) {
    return sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr);
  }
  std::string text(const std::string& sql) {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(handle_, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK)
      return std::string("error: ") + sqlite3_errmsg(handle_);
    std::string value;
    if (sqlite3_step(statement) == SQLITE_ROW) {
      const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement, 0));
      if (bytes != nullptr) value = bytes;
    }
    sqlite3_finalize(statement);
    return value;
  }
  sqlite3* handle() { return handle_; }

 private:
  sqlite3* handle_ = nullptr;
};

}  // namespace idem
