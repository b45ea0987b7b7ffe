// The other process of the tests: does one thing to a database and says how it went, one line each.
//   open PATH [UID]            as that user, if given: "ok DURABILITY", or the error
//   hold PATH MILLIS           holds the write transaction so long: "held", then "done"
//   claim PATH THREADS KEYS    every thread claims key 0..KEYS-1: "written N stands N failed N"
//   loop PATH PREFIX           claims and completes until it is killed, each key when it is done
#include <sqlite3.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "idem/clock.hpp"
#include "idem/sqlite_store.hpp"

namespace {

using namespace idem;

result<StorePtr> open_store(const std::string& path) {
  SqliteOptions options;
  options.path = path;
  options.busy_timeout = std::chrono::seconds(20);
  return open_sqlite(options);
}

int complain(const Error& error) {
  std::cout << to_string(error.code) << ' ' << error.message << std::endl;
  return 1;
}

Draft claim_draft() {
  Draft draft;
  draft.owner = Owner::random();
  draft.lease = std::chrono::seconds(600);
  draft.keep = std::chrono::hours(24);
  return draft;
}

int open_as(const std::string& path, const char* user) {
  if (user != nullptr) {
    const auto id = static_cast<uid_t>(std::stoul(user));
    if (setgid(id) != 0 || setuid(id) != 0) return 2;
  }
  auto store = open_store(path);
  if (!store) return complain(store.error());
  const char* const words[] = {"none", "process", "power"};
  std::cout << "ok " << words[static_cast<int>((*store)->capabilities().durability)] << std::endl;
  return 0;
}

int hold(const std::string& path, int millis) {
  sqlite3* database = nullptr;
  if (sqlite3_open(path.c_str(), &database) != SQLITE_OK ||
      sqlite3_exec(database, "BEGIN IMMEDIATE", nullptr, nullptr, nullptr) != SQLITE_OK)
    return 1;
  std::cout << "held" << std::endl;
  system_clock().pause(std::chrono::milliseconds(millis));
  const int code = sqlite3_exec(database, "COMMIT", nullptr, nullptr, nullptr);
  sqlite3_close(database);
  std::cout << "done" << std::endl;
  return code;
}

int claim(const std::string& path, int threads, int keys) {
  auto store = open_store(path);
  if (!store) return complain(store.error());
  std::atomic<int> written{0};
  std::atomic<int> stands{0};
  std::atomic<int> failed{0};
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t) {
    running.emplace_back([&] {
      for (int i = 0; i < keys; ++i) {
        const Key key("k" + std::to_string(i));
        Insert op{key, claim_draft(), {}};
        (*store)->insert({&op, 1});
        ++(op.answer.state == Answer::State::written  ? written
           : op.answer.state == Answer::State::stands ? stands
                                                      : failed);
      }
    });
  }
  for (std::thread& thread : running) thread.join();
  std::cout << "written " << written << " stands " << stands << " failed " << failed << std::endl;
  return 0;
}

int loop(const std::string& path, const std::string& prefix) {
  auto store = open_store(path);
  if (!store) return complain(store.error());
  for (int i = 0;; ++i) {
    const Key key(prefix + std::to_string(i));
    Insert insert{key, claim_draft(), {}};
    (*store)->insert({&insert, 1});
    if (insert.answer.state != Answer::State::written) return 1;
    const std::string text = "result of " + key.key;
    Draft success = insert.draft;
    success.status = Status::success;
    success.fence = insert.answer.held.fence;
    success.fresh = false;
    success.result = text;
    Replace replace{key, insert.answer.held.version, success, {}};
    (*store)->replace({&replace, 1});
    if (replace.answer.state != Answer::State::written) return 1;
    std::cout << key.key << std::endl;
  }
}

}  // namespace

int main(int count, char** words) {
  const std::vector<std::string> given(words + 1, words + count);
  if (given.size() >= 2 && given[0] == "open")
    return open_as(given[1], count > 3 ? words[3] : nullptr);
  if (given.size() == 3 && given[0] == "hold") return hold(given[1], std::stoi(given[2]));
  if (given.size() == 4 && given[0] == "claim")
    return claim(given[1], std::stoi(given[2]), std::stoi(given[3]));
  if (given.size() == 3 && given[0] == "loop") return loop(given[1], given[2]);
  return 2;
}
