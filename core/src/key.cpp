#include "idem/key.hpp"

#include <charconv>
#include <optional>

#include "idem/fingerprint.hpp"

namespace idem {
namespace {

// The code point that starts at `at`, moving `at` past it; nullopt if the bytes are not UTF-8
// (overlong forms, surrogates and values above U+10FFFF are not).
std::optional<char32_t> next_code_point(std::string_view text, std::size_t& at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte(at);
  std::size_t length = 0;
  char32_t value = 0;
  if (lead < 0x80) {
    ++at;
    return lead;
  }
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
    value = lead & 0x1F;
  } else if ((lead & 0xF0) == 0xE0) {
    length = 3;
    value = lead & 0x0F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    value = lead & 0x07;
  } else {
    return std::nullopt;
  }
  if (text.size() - at < length) return std::nullopt;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return std::nullopt;
    value = (value << 6) | (byte(at + i) & 0x3F);
  }
  const bool overlong = (length == 3 && value < 0x800) || (length == 4 && value < 0x10000);
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (overlong || surrogate || value > 0x10FFFF) return std::nullopt;
  at += length;
  return value;
}

bool is_control(char32_t c) { return c < 0x20 || (c >= 0x7F && c <= 0x9F); }

bool is_blank(char32_t c) {
  return c == U' ' || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

result<void> check_part(std::string_view name, std::string_view text, std::size_t bytes_max) {
  const auto bad = [&](const std::string& rule) {
    return idem::fail(errc::invalid_argument, std::string(name) + " " + rule);
  };
  if (text.size() > bytes_max) {
    return bad("has " + std::to_string(text.size()) + " bytes; at most " +
               std::to_string(bytes_max) + " are allowed");
  }
  bool only_blank = true;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t start = at;
    const auto code_point = next_code_point(text, at);
    if (!code_point) return bad("is not valid UTF-8 at byte " + std::to_string(start));
    if (is_control(*code_point)) {
      return bad("has a control character at byte " + std::to_string(start));
    }
    only_blank = only_blank && is_blank(*code_point);
  }
  if (!text.empty() && only_blank) return bad("is blank");
  return {};
}

void append_sized(std::string& out, std::string_view part) {
  out += std::to_string(part.size());
  out += ':';
  out += part;
}

// Takes "<length>:<bytes>" off the front of `rest`.
std::optional<std::string> take_sized(std::string_view& rest) {
  std::size_t length = 0;
  const char* const end = rest.data() + rest.size();
  const auto [colon, error] = std::from_chars(rest.data(), end, length);
  if (error != std::errc() || colon == end || *colon != ':') return std::nullopt;
  const auto digits = static_cast<std::size_t>(colon - rest.data());
  const bool leading_zero = digits > 1 && rest.front() == '0';
  rest.remove_prefix(digits + 1);
  if (leading_zero || length > rest.size()) return std::nullopt;
  std::string part(rest.substr(0, length));
  rest.remove_prefix(length);
  return part;
}

constexpr char kSeparator = '|';

std::string escaped(std::string_view fact) {
  std::string text;
  for (const char c : fact) {
    if (c == kSeparator || c == '\\') text += '\\';
    text += c;
  }
  return text;
}

}  // namespace

result<void> check_key(KeyRef key) {
  if (key.key.empty()) {
    return idem::fail(errc::invalid_argument, "the key is empty; 1 to 128 bytes are needed");
  }
  if (auto checked = check_part("the key", key.key, kKeyBytesMax); !checked) return checked;
  if (auto checked = check_part("biz_type", key.biz_type, kBizTypeBytesMax); !checked) {
    return checked;
  }
  return check_part("tenant", key.tenant, kTenantBytesMax);
}

std::string storage_name(KeyRef key) {
  std::string name;
  name.reserve(key.tenant.size() + key.biz_type.size() + key.key.size() + 8);
  append_sized(name, key.tenant);
  append_sized(name, key.biz_type);
  name += key.key;
  return name;
}

result<Key> parse_storage_name(std::string_view name) {
  auto tenant = take_sized(name);
  auto biz_type = tenant ? take_sized(name) : std::nullopt;
  if (!biz_type) return idem::fail(errc::invalid_argument, "not a storage name");
  return Key(std::move(*tenant), std::move(*biz_type), std::string(name));
}

KeyBuilder::KeyBuilder(std::string_view action) : text_(escaped(action)) {}

KeyBuilder& KeyBuilder::add(std::string_view fact) {
  text_ += kSeparator;
  text_ += escaped(fact);
  return *this;
}

KeyBuilder& KeyBuilder::add(std::int64_t fact) { return add(std::to_string(fact)); }

std::string KeyBuilder::key() const {
  if (text_.size() <= kKeyBytesMax) return text_;
  // Injective: a backslash before 's' comes from no escaped fact, so no short key has this form.
  const std::string digest = Fingerprint::of_bytes(text_).hex();
  constexpr std::size_t kTailBytes = 1 + 7 + 64;
  std::size_t head = 0;
  while (head < text_.size()) {
    std::size_t next = head;
    if (!next_code_point(text_, next) || next > kKeyBytesMax - kTailBytes) break;
    if (text_[head] == kSeparator || text_[head] == '\\') break;
    head = next;
  }
  return text_.substr(0, head) + "\\sha256:" + digest;
}

}  // namespace idem
