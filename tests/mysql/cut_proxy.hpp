// A TCP relay that cuts a conversation after a given byte.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

namespace idem::mysql_test {

enum class Way { request, reply };
enum class Cut {
  fin,    // both sides are closed
  rst,    // both sides are reset
  stall,  // nothing more is relayed; both sides stay open
  late,   // the rest of the request reaches the server after the client has given up
};

// One thread of its own relays everything.
class CutProxy {
 public:
  explicit CutProxy(std::uint16_t upstream);
  ~CutProxy();
  CutProxy(const CutProxy&) = delete;
  CutProxy& operator=(const CutProxy&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }
  // The next conversation that has relayed `bytes` more that way is cut, once.
  void arm(Way way, std::size_t bytes, Cut cut);
  // True if the cut did not happen; it will not any more.
  bool disarm();
  [[nodiscard]] std::size_t accepted() const;

 private:
  struct Pair {
    int client = -1;
    int server = -1;
    bool stalled = false;
    bool late = false;  // the rest of the request goes on once the client is gone
  };
  void serve();
  void accept_one();
  bool relay(Pair& pair, Way way);
  bool cut(Pair& pair, Way way, const char* bytes, std::size_t passed, std::size_t all);
  static void close_pair(Pair& pair, bool reset);

  const std::uint16_t upstream_;
  std::uint16_t port_ = 0;
  int listener_ = -1;
  int wake_[2] = {-1, -1};
  mutable std::mutex mutex_;  // guards what follows
  bool armed_ = false;
  Way way_ = Way::request;
  std::size_t left_ = 0;
  Cut cut_ = Cut::fin;
  std::size_t accepted_ = 0;
  std::vector<Pair> pairs_;                              // of the thread alone
  std::vector<std::pair<int, std::vector<char>>> held_;  // client, rest of its request
  std::thread thread_;
};

}  // namespace idem::mysql_test
