// What an error reply means for the one who asked. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "idem/error.hpp"

namespace idem::redis {

enum class ReplyErrorKind : std::uint8_t {
  answer,     // final for this item: `error` tells
  no_script,  // send the script's text
  moved,      // the slot lives at `endpoint`: learn the map and ask there
  ask,        // this one key is at `endpoint` for now: ASKING, once
  not_now,    // surely not applied; a node that is starting, failing over or migrating
  demoted,    // surely not applied; this server takes no writes: connect again
};

struct ReplyError {
  ReplyErrorKind kind = ReplyErrorKind::answer;
  Error error;           // what to say if nothing else helps
  std::string endpoint;  // moved, ask: "host:port", or ":port" for the same host
};

// Every error reply says that the command had no effect: the scripts write with their last command.
[[nodiscard]] ReplyError classify(std::string_view text);

}  // namespace idem::redis
