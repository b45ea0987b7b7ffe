// What a server's or the network's error means for the statement that got it.
#pragma once

#include <boost/mysql/diagnostics.hpp>
#include <boost/mysql/error_code.hpp>
#include <string>
#include <string_view>

#include "idem/error.hpp"

namespace idem::mysql {

struct Fault {
  enum class Kind : std::uint8_t {
    none,
    duplicate,  // a unique key refused the row; only the statement is undone
    again,      // deadlock: the whole transaction is undone, and is to be run again
    waited,     // another transaction held the row too long; only the statement is undone
    refused,    // not applied, and asking again will not help; `error` is what to tell
    broken,     // no answer, or none to be trusted: a write may have been applied
  };
  Kind kind = Kind::none;
  bool close = false;   // the connection is of no more use
  bool unsent = false;  // nothing of the statement was sent: another connection may do it
  Error error;

  [[nodiscard]] explicit operator bool() const { return kind != Kind::none; }
};

// Of a statement on an established connection. `what`: for the message, "insert".
[[nodiscard]] Fault fault_of(const boost::mysql::error_code& code,
                             const boost::mysql::diagnostics& server_said, std::string_view what);

// Of an attempt to connect: nothing was sent, so nothing can have been applied.
[[nodiscard]] Error connect_error(const boost::mysql::error_code& code,
                                  const boost::mysql::diagnostics& server_said,
                                  std::string_view where);

// No reply within the deadline.
[[nodiscard]] Fault no_reply(std::string_view what);

}  // namespace idem::mysql
