// The demo's second process: claims, says so, and then hangs until it is killed.
#pragma once

#include <string>

#include "exit_code.hpp"
#include "idem/record.hpp"

namespace idem::cli {

inline constexpr const char* kDemoKey = "ship-42";
inline constexpr Micros kDemoLease = std::chrono::seconds(2);

// In the worker: claims kDemoKey in that store, prints its token, waits for its death.
ExitCode be_worker(const std::string& store_url);

// In the demo: starts this very program as a worker.
class Worker {
 public:
  explicit Worker(const std::string& store_url);
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker();  // kills it, if nobody did

  [[nodiscard]] int pid() const { return pid_; }
  // What it claimed with; blocks until it has.
  [[nodiscard]] Token token() const { return token_; }
  // kill -9. True if that is what ended it.
  bool kill();

 private:
  int pid_ = -1;
  Token token_;
};

}  // namespace idem::cli
