#include "idem/store_url.hpp"

#include <uriparser/Uri.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <vector>

#include "idem/redacted.hpp"

namespace idem {
namespace {

std::string text_of(const UriTextRangeA& range) {
  return range.first == nullptr ? std::string() : std::string(range.first, range.afterLast);
}

// Percent-decoded; nullopt for "%" not followed by two hexadecimal digits or a NUL inside.
std::optional<std::string> decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    unsigned value = 0;
    const char* const first = text.data() + i + 1;
    if (text.size() - i < 3 || std::from_chars(first, first + 2, value, 16).ptr != first + 2 ||
        value == 0) {
      return std::nullopt;
    }
    out += static_cast<char>(value);
    i += 2;
  }
  return out;
}

std::string path_of(const UriUriA& uri) {
  std::string path;
  const bool rooted =
      uri.absolutePath == URI_TRUE || (uri.pathHead != nullptr && uri.hostText.first != nullptr);
  for (const UriPathSegmentA* segment = uri.pathHead; segment != nullptr; segment = segment->next) {
    if (rooted || segment != uri.pathHead) path += '/';
    path += text_of(segment->text);
  }
  return path;
}

struct Authority {
  std::string user, password;
};

result<Authority> split_user_info(const std::string& info) {
  const std::size_t colon = info.find(':');
  const auto user = decoded(std::string_view(info).substr(0, colon));
  const auto password = colon == std::string::npos
                            ? std::optional<std::string>("")
                            : decoded(std::string_view(info).substr(colon + 1));
  if (!user || !password) {
    return idem::fail(errc::invalid_argument, "bad percent-encoding in the user or password");
  }
  return Authority{*user, *password};
}

// Also of a parameter that no store knows: a misspelt password is one all the same.
bool may_be_secret(std::string_view name) {
  constexpr std::array<std::string_view, 5> kWords{"pass", "pw", "secret", "token", "auth"};
  return name == "key" || std::any_of(kWords.begin(), kWords.end(), [&](std::string_view word) {
           return name.find(word) != std::string_view::npos;
         });
}

Error not_a_url() {
  return idem::fail(errc::invalid_argument,
                    "the store URL cannot be parsed; percent-encode special characters (in a "
                    "password: @ as %40, / as %2F, : as %3A, # as %23)");
}

}  // namespace

result<StoreUrl> StoreUrl::parse(std::string_view text) {
  const std::string owned(text);
  if (owned.find(':') == std::string::npos) {
    return idem::fail(errc::invalid_argument,
                      "a store URL starts with a scheme: memory:, sqlite:file.db ...");
  }
  UriUriA uri;
  if (uriParseSingleUriA(&uri, owned.c_str(), nullptr) != URI_SUCCESS) return not_a_url();
  const std::unique_ptr<UriUriA, void (*)(UriUriA*)> guard(&uri, uriFreeUriMembersA);

  StoreUrl url;
  url.scheme_ = text_of(uri.scheme);
  if (url.scheme_.empty()) return not_a_url();
  url.has_authority_ = uri.hostText.first != nullptr;
  auto path = decoded(path_of(uri));
  auto host = decoded(text_of(uri.hostText));
  if (!path || !host) return not_a_url();
  url.path_ = std::move(*path);
  url.host_ = std::move(*host);
  if (url.has_authority_) {
    // "redis://:a/b@h:6379" parses, with the host "" and the rest in the path.
    const bool split_password = url.path_.find('@') != std::string::npos;
    if (split_password) return not_a_url();
    auto authority = split_user_info(text_of(uri.userInfo));
    if (!authority) return authority.error();
    url.user_ = std::move(authority->user);
    url.password_ = std::move(authority->password);
    if (const std::string port = text_of(uri.portText); !port.empty()) {
      std::uint16_t number = 0;
      const auto parsed = std::from_chars(port.data(), port.data() + port.size(), number);
      if (parsed.ec != std::errc() || number == 0) {
        // Not shown: it is a password where "@host" was forgotten.
        return idem::fail(errc::invalid_argument, "what follows the host is not a port (1..65535)");
      }
      url.port_ = number;
    }
  }
  if (uri.fragment.first != nullptr) return not_a_url();

  std::string_view query;
  const std::string query_text = text_of(uri.query);
  query = query_text;
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(query.size(), pair.size() + 1));
    const std::size_t equals = pair.find('=');
    const auto name = decoded(pair.substr(0, equals));
    const auto value =
        decoded(equals == std::string_view::npos ? std::string_view() : pair.substr(equals + 1));
    if (!name || !value || name->empty()) return not_a_url();
    if (!url.parameters_.emplace(*name, *value).second) {
      return idem::fail(errc::invalid_argument, "parameter '" + *name + "' stands twice");
    }
  }
  return url;
}

std::string redacted(std::string_view text) {
  const bool has_colon = text.find(':') != std::string_view::npos;
  const bool may_be_url = text.find('@') != std::string_view::npos ||
                          (has_colon && text.find_first_of("/%?") != std::string_view::npos);
  return may_be_url ? redacted_url(text) : std::string(text);
}

std::string redacted_url(std::string_view text) {
  if (const auto url = StoreUrl::parse(text)) return url->redacted();
  return std::string(text.substr(0, text.find(':') + 1)) + "...";
}

std::string StoreUrl::redacted() const {
  std::string text = scheme_ + ":";
  if (has_authority_) {
    text += "//";
    // A name that stands alone may be a password in the wrong place.
    if (!user_.empty()) text += password_.empty() ? "***" : user_;
    if (!password_.empty()) text += ":***";
    if (!user_.empty() || !password_.empty()) text += "@";
    text += host_;
    if (port_) text += ":" + std::to_string(*port_);
  }
  // "redis:/u:pw@host": what stands before an '@' may be a password in the wrong place.
  const std::size_t at = path_.rfind('@');
  text += at == std::string::npos ? path_ : "***" + path_.substr(at);
  char separator = '?';
  for (const auto& [name, value] : parameters_) {
    text += separator + name + "=";
    // A tiered store's parameters are URLs of their own and may hold passwords.
    text += may_be_secret(name) ? "***" : idem::redacted(value);
    separator = '&';
  }
  return text;
}

std::optional<std::string> StoreUrl::text(std::string_view name) {
  known_.emplace(name);
  const auto found = parameters_.find(name);
  if (found == parameters_.end()) return std::nullopt;
  return found->second;
}

namespace {

// Parses a parameter's text, naming the parameter in the error.
template <class T, class Parse>
result<std::optional<T>> parsed_parameter(std::string_view name,
                                          const std::optional<std::string>& text, Parse parse) {
  if (!text) return std::optional<T>();
  auto value = parse(*text);
  if (!value) {
    return idem::fail(errc::invalid_argument,
                      "parameter '" + std::string(name) + "': " + value.error().message);
  }
  return std::optional<T>(*value);
}

}  // namespace

result<std::optional<std::uint64_t>> StoreUrl::count(std::string_view name) {
  return parsed_parameter<std::uint64_t>(name, text(name), parse_count);
}

result<std::optional<Duration>> StoreUrl::duration(std::string_view name) {
  return parsed_parameter<Duration>(name, text(name), parse_duration);
}

result<std::optional<bool>> StoreUrl::flag(std::string_view name) {
  return parsed_parameter<bool>(name, text(name), [](const std::string& value) -> result<bool> {
    if (value == "true" || value == "1") return true;
    if (value == "false" || value == "0") return false;
    return idem::fail(errc::invalid_argument, "'" + value + "' is neither true nor false");
  });
}

result<std::optional<Durability>> StoreUrl::durability(std::string_view name) {
  return parsed_parameter<Durability>(
      name, text(name), [](const std::string& value) -> result<Durability> {
        if (value == "none") return Durability::none;
        if (value == "process") return Durability::process;
        if (value == "power") return Durability::power;
        return idem::fail(errc::invalid_argument,
                          "'" + value + "' is not one of none, process, power");
      });
}

result<void> StoreUrl::check_all_known() const {
  for (const auto& [name, value] : parameters_) {
    if (known_.contains(name)) continue;
    std::string message = "unknown parameter '" + name + "' for " + scheme_ + ":";
    if (const auto meant = nearest(name, known_)) message += ", did you mean '" + *meant + "'?";
    return idem::fail(errc::invalid_argument, std::move(message));
  }
  return {};
}

std::optional<std::string> nearest(std::string_view word,
                                   const std::set<std::string, std::less<>>& among) {
  // Optimal string alignment: insert, delete, replace, or swap two neighbours.
  const auto distance = [&](std::string_view other) {
    std::vector<std::vector<std::size_t>> cost(word.size() + 1,
                                               std::vector<std::size_t>(other.size() + 1));
    for (std::size_t i = 0; i <= word.size(); ++i) cost[i][0] = i;
    for (std::size_t j = 0; j <= other.size(); ++j) cost[0][j] = j;
    for (std::size_t i = 1; i <= word.size(); ++i) {
      for (std::size_t j = 1; j <= other.size(); ++j) {
        const bool same = word[i - 1] == other[j - 1];
        cost[i][j] =
            std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + (same ? 0 : 1)});
        const bool swapped =
            i > 1 && j > 1 && word[i - 1] == other[j - 2] && word[i - 2] == other[j - 1];
        if (swapped) cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
    return cost[word.size()][other.size()];
  };
  std::optional<std::string> best;
  std::size_t best_distance = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string& candidate : among) {
    if (const std::size_t d = distance(candidate); d < best_distance) {
      best = candidate;
      best_distance = d;
    }
  }
  return best;
}

}  // namespace idem
