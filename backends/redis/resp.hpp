// RESP2, the wire protocol of Redis: bytes in, replies out. Pure, no I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "idem/error.hpp"

namespace idem::redis {

struct Reply {
  enum class Type : std::uint8_t { simple, error, integer, bulk, nil, array };
  Type type = Type::nil;
  std::string text;  // simple, error, bulk
  std::int64_t integer = 0;
  std::vector<Reply> elements;

  [[nodiscard]] bool is_error() const { return type == Type::error; }
};

// Appends one command. Arguments are binary safe.
void append_command(std::string& out, std::initializer_list<std::string_view> arguments);
void append_command(std::string& out, std::span<const std::string_view> arguments);
// Piece by piece: how many arguments, then before each its length, and behind it kLineEnd.
void begin_command(std::string& out, std::size_t arguments);
void begin_argument(std::string& out, std::size_t bytes);
void append_argument(std::string& out, std::string_view argument);
inline constexpr std::string_view kLineEnd = "\r\n";

// Cuts a stream of bytes into replies. Whatever a broken or hostile peer sends, the answer is a
// reply, "more bytes please" or an error; what is announced is not allocated before it came.
class ReplyReader {
 public:
  static constexpr std::size_t kBulkBytesMax = std::size_t{512} << 20;  // the server's own limit
  static constexpr std::size_t kElementsMax = std::size_t{1} << 20;
  static constexpr std::size_t kLineBytesMax = std::size_t{64} << 10;
  static constexpr int kDepthMax = 8;

  // Room for the next bytes, and how many of them came.
  [[nodiscard]] std::span<char> prepare();
  void commit(std::size_t bytes);

  // nullopt: not complete yet. After an error the stream is of no use any more.
  [[nodiscard]] result<std::optional<Reply>> next();

 private:
  std::string buffer_;
  std::size_t begin_ = 0;   // of what is not yet cut
  std::size_t end_ = 0;     // of what came
  std::size_t wanted_ = 0;  // bytes the reply at begin_ needs at least
};

}  // namespace idem::redis
