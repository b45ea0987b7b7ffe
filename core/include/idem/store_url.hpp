// Store URLs: scheme:path?name=value&..., parsed strictly. Errors say how to write it, and never
// show a password.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "idem/error.hpp"
#include "idem/store.hpp"
#include "idem/time.hpp"

namespace idem {

class StoreUrl {
 public:
  // invalid_argument: no scheme, bad percent-encoding, a parameter given twice, or the tell-tale
  // signs of a password that was not percent-encoded.
  [[nodiscard]] static result<StoreUrl> parse(std::string_view text);

  [[nodiscard]] const std::string& scheme() const { return scheme_; }
  [[nodiscard]] bool has_authority() const { return has_authority_; }
  [[nodiscard]] const std::string& user() const { return user_; }
  [[nodiscard]] const std::string& password() const { return password_; }
  [[nodiscard]] const std::string& host() const { return host_; }
  [[nodiscard]] std::optional<std::uint16_t> port() const { return port_; }
  // Percent-decoded. "sqlite:a.db" "a.db"; "sqlite:///a.db" "/a.db"; "sqlite:////a.db" "//a.db".
  [[nodiscard]] const std::string& path() const { return path_; }
  // The URL with "***" for the password: the form to print.
  [[nodiscard]] std::string redacted() const;

  // Parameters. Each read marks the name as known; check_all_known() then refuses the rest, with
  // the nearest known name as suggestion. Reads of a malformed value are invalid_argument.
  [[nodiscard]] std::optional<std::string> text(std::string_view name);
  [[nodiscard]] result<std::optional<std::uint64_t>> count(
      std::string_view name);  // "64", "1M", "4GiB"
  [[nodiscard]] result<std::optional<Duration>> duration(std::string_view name);  // "500ms"
  [[nodiscard]] result<std::optional<bool>> flag(std::string_view name);          // true, false
  [[nodiscard]] result<std::optional<Durability>> durability(
      std::string_view name);  // none, process, power
  [[nodiscard]] result<void> check_all_known() const;

 private:
  std::string scheme_, user_, password_, host_, path_;
  bool has_authority_ = false;
  std::optional<std::uint16_t> port_;
  std::map<std::string, std::string, std::less<>> parameters_;
  std::set<std::string, std::less<>> known_;
};

// "30s", "500ms", "0.5s", "1h30m", "24h", "7d", "100us": a number and a unit, one or more times,
// largest first. invalid_argument for a bare number, zero or negative values, and overflow.
[[nodiscard]] result<Duration> parse_duration(std::string_view text);
// The shortest exact form: "1h30m", "500ms".
[[nodiscard]] std::string format_duration(Micros d);

// "64", "10k", "1M", "4KiB", "1GiB": k and M are decimal, the iB forms binary.
[[nodiscard]] result<std::uint64_t> parse_count(std::string_view text);

// The candidate with the smallest edit distance to `word`, if it is near enough to be meant.
[[nodiscard]] std::optional<std::string> nearest(std::string_view word,
                                                 const std::set<std::string, std::less<>>& among);

}  // namespace idem
