// The store's connections: as many as it has lanes, made when needed, mended when broken.
//
// A server that is away is asked again after a pause with jitter, by one caller at a time; all
// others are told `unavailable` at once meanwhile. It is back in use at most kPauseMax after its
// return.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <random>
#include <vector>

#include "session.hpp"

namespace idem::mysql {

class Pool {
 public:
  Pool(MysqlOptions options, std::unique_ptr<boost::asio::ssl::context> tls);
  ~Pool();

  // A session to be used by one thread, to be given back. Waits for one if all are in use, or if no
  // more can be made while some are in use.
  // unavailable, denied, cannot_open: none was to be had; nothing was sent.
  [[nodiscard]] result<std::unique_ptr<Session>> take(const Budget& budget);
  // Closes it if it is not usable any more.
  void give_back(std::unique_ptr<Session> session);

  [[nodiscard]] const MysqlOptions& options() const { return options_; }
  // Attempts to connect so far, successful or not.
  [[nodiscard]] std::uint64_t attempts() const;

 private:
  [[nodiscard]] std::unique_ptr<Session> take_idle(std::unique_lock<std::mutex>& lock,
                                                   const Budget& budget);
  [[nodiscard]] result<std::unique_ptr<Session>> make(std::unique_lock<std::mutex>& lock,
                                                      const Budget& budget);
  void note_failure(const Error& error);
  [[nodiscard]] bool none_in_sight() const;

  const MysqlOptions options_;
  const std::unique_ptr<boost::asio::ssl::context> tls_;

  mutable std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Session>> idle_;  // the one used last is taken first
  std::size_t made_ = 0;                        // idle, in use or being made
  std::size_t in_use_ = 0;
  std::size_t hopeful_ = 0;  // attempts under way that were begun before one failed
  std::uint64_t attempts_ = 0;
  bool failing_ = false;  // the last attempt failed
  bool trying_ = false;   // while failing: somebody is at it
  Time next_attempt_{};   // while failing
  Micros pause_{};
  Error last_error_;
  std::minstd_rand random_;
};

}  // namespace idem::mysql
