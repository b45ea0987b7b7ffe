#include "resp.hpp"

#include <algorithm>
#include <charconv>

namespace idem::redis {
namespace {

constexpr std::size_t kReadBytesMin = std::size_t{16} << 10;
constexpr std::size_t kReadBytesMax = std::size_t{1} << 20;

void append_number(std::string& out, char mark, std::size_t number) {
  char line[24];
  line[0] = mark;
  char* end = std::to_chars(line + 1, line + sizeof(line) - kLineEnd.size(), number).ptr;
  end = std::copy(kLineEnd.begin(), kLineEnd.end(), end);
  out.append(line, end);
}

Error broken(const char* what) {
  return idem::fail(errc::unknown, std::string("the server's reply is not RESP: ") + what);
}

// Where a parse stands: an answer, an error, or the number of bytes it needs to go on.
class Parser {
 public:
  explicit Parser(std::string_view bytes) : bytes_(bytes) {}

  // False: not complete (wanted() tells) or broken (error() tells).
  bool reply(Reply& out, int depth) {
    if (depth > ReplyReader::kDepthMax) return fail_with("nested too deep");
    std::string_view line;
    if (!take_line(line)) return false;
    if (line.empty()) return fail_with("an empty line");
    const std::string_view rest = line.substr(1);
    switch (line.front()) {
      case '+':
        out.type = Reply::Type::simple;
        out.text = rest;
        return true;
      case '-':
        out.type = Reply::Type::error;
        out.text = rest;
        return true;
      case ':':
        out.type = Reply::Type::integer;
        return number(rest, out.integer);
      case '$':
        return bulk(rest, out);
      case '*':
        return array(rest, out, depth);
      default:
        return fail_with("an unknown type");
    }
  }

  [[nodiscard]] std::size_t position() const { return at_; }
  [[nodiscard]] std::size_t wanted() const { return wanted_; }
  [[nodiscard]] const char* error() const { return error_; }

 private:
  bool fail_with(const char* what) {
    error_ = what;
    return false;
  }

  bool want(std::size_t bytes) {
    wanted_ = bytes;
    return false;
  }

  bool take_line(std::string_view& line) {
    const std::size_t end = bytes_.find("\r\n", at_);
    if (end == std::string_view::npos) {
      if (bytes_.size() - at_ > ReplyReader::kLineBytesMax) return fail_with("an endless line");
      return want(bytes_.size() + 1);
    }
    line = bytes_.substr(at_, end - at_);
    at_ = end + 2;
    return true;
  }

  bool number(std::string_view text, std::int64_t& out) {
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), out);
    if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) {
      return fail_with("a bad number");
    }
    return true;
  }

  bool bulk(std::string_view text, Reply& out) {
    std::int64_t length = 0;
    if (!number(text, length)) return false;
    if (length == -1) return true;  // nil
    if (length < 0 || static_cast<std::size_t>(length) > ReplyReader::kBulkBytesMax) {
      return fail_with("a bad length");
    }
    const std::size_t bytes = static_cast<std::size_t>(length);
    if (bytes_.size() - at_ < bytes + 2) return want(at_ + bytes + 2);
    if (bytes_.substr(at_ + bytes, 2) != "\r\n") return fail_with("no end where it should be");
    out.type = Reply::Type::bulk;
    out.text = bytes_.substr(at_, bytes);
    at_ += bytes + 2;
    return true;
  }

  bool array(std::string_view text, Reply& out, int depth) {
    std::int64_t count = 0;
    if (!number(text, count)) return false;
    if (count == -1) return true;  // nil
    if (count < 0 || static_cast<std::size_t>(count) > ReplyReader::kElementsMax) {
      return fail_with("a bad count");
    }
    out.type = Reply::Type::array;
    for (std::int64_t i = 0; i < count; ++i) {
      if (!reply(out.elements.emplace_back(), depth + 1)) return false;
    }
    return true;
  }

  std::string_view bytes_;
  std::size_t at_ = 0;
  std::size_t wanted_ = 0;
  const char* error_ = nullptr;
};

}  // namespace

void begin_command(std::string& out, std::size_t arguments) { append_number(out, '*', arguments); }

void begin_argument(std::string& out, std::size_t bytes) { append_number(out, '$', bytes); }

void append_argument(std::string& out, std::string_view argument) {
  begin_argument(out, argument.size());
  out += argument;
  out += kLineEnd;
}

void append_command(std::string& out, std::span<const std::string_view> arguments) {
  begin_command(out, arguments.size());
  for (const std::string_view argument : arguments) append_argument(out, argument);
}

void append_command(std::string& out, std::initializer_list<std::string_view> arguments) {
  append_command(out, std::span<const std::string_view>(arguments.begin(), arguments.size()));
}

std::span<char> ReplyReader::prepare() {
  if (begin_ == end_) {
    begin_ = end_ = 0;
    if (buffer_.size() > 2 * kReadBytesMax) std::string().swap(buffer_);  // after a giant
  } else if (begin_ > buffer_.size() / 2) {
    buffer_.erase(0, begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  const std::size_t there = end_ - begin_;
  const std::size_t missing = wanted_ > there ? wanted_ - there : 0;
  const std::size_t room = std::clamp(missing, kReadBytesMin, kReadBytesMax);
  if (buffer_.size() < end_ + room) buffer_.resize(end_ + room);
  return {buffer_.data() + end_, buffer_.size() - end_};
}

void ReplyReader::commit(std::size_t bytes) { end_ += bytes; }

result<std::optional<Reply>> ReplyReader::next() {
  const std::string_view bytes(buffer_.data() + begin_, end_ - begin_);
  if (bytes.empty() || bytes.size() < wanted_) return std::optional<Reply>();
  Parser parser(bytes);
  std::optional<Reply> reply(std::in_place);
  if (parser.reply(*reply, 0)) {
    begin_ += parser.position();
    wanted_ = 0;
    return reply;
  }
  if (parser.error() != nullptr) return broken(parser.error());
  wanted_ = parser.wanted();
  return std::optional<Reply>();
}

}  // namespace idem::redis
