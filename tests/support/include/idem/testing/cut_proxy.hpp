// A TCP proxy that counts bytes and cuts connections at a chosen one.
//
// Put between a store and its server it makes every way in which a network loses a request or a
// reply, one byte after the other.
#pragma once

#include <cstdint>
#include <memory>

namespace idem::testing {

struct Cut {
  enum class Side : std::uint8_t { request, reply };
  enum class Kind : std::uint8_t {
    fin,    // both ends see an orderly end
    rst,    // the client sees a reset
    stall,  // nothing goes through any more, both ends stay open
    late,   // the client sees an end; what it still sent reaches the server at deliver_late()
  };
  Side side = Side::request;
  std::uint64_t after = 0;  // bytes of that side that still go through, counted from arm()
  Kind kind = Kind::fin;
};

// Thread safe; has a thread of its own.
class CutProxy {
 public:
  explicit CutProxy(std::uint16_t server_port);  // on loopback, as the proxy itself
  ~CutProxy();
  CutProxy(const CutProxy&) = delete;
  CutProxy& operator=(const CutProxy&) = delete;

  [[nodiscard]] std::uint16_t port() const;

  // The next byte of that side after `cut.after` more does not go through. Only the connection that
  // carries it is cut; later connections are whole. Forgets an earlier cut.
  void arm(const Cut& cut);
  void disarm();
  [[nodiscard]] bool fired() const;  // since arm()

  // Sends the server what a `late` cut held back, and returns when the server has dealt with it.
  void deliver_late();
  // Ends stalled connections.
  void release();

  [[nodiscard]] std::uint64_t accepted() const;  // connections so far, whole or not
  struct Bytes {
    std::uint64_t request = 0;
    std::uint64_t reply = 0;
  };
  [[nodiscard]] Bytes passed() const;  // so far, all connections

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace idem::testing
