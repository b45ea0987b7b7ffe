// Configuration: one table of settings, read from a YAML file, the environment and flags.
//
//   idempotency:
//     key_header: Idempotency-Key
//     redis_ttl: 30s                  # the lease
//     db_timeout_clean_seconds: 600   # stuck_after
//     return_original_result: true
//     store: sqlite:orders.db
//
// Default < file < environment < flags, setting by setting; where each value came from is kept.
// Strict: an unknown or repeated name, a wrong type, a missing unit, a value out of range is an
// error that names the place ("idem.yml:7:3: error: unknown key 'key_heder' (did you mean
// 'key_header'?)"). docs/configuration.md lists every setting.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "idem/http_policy.hpp"
#include "idem/serve_options.hpp"
#include "idem/service.hpp"
#include "idem/store_url.hpp"

namespace idem {

enum class Origin : std::uint8_t { built_in, file, environment, flag };
[[nodiscard]] std::string_view to_string(Origin origin) noexcept;

// One setting's value, and where it came from.
struct Setting {
  std::string name;   // "redis_ttl", "http.strict", "biz_types.pay.redis_ttl", "serve.routes"
  std::string value;  // as it would be written; a store URL's password is "***"
  Origin origin = Origin::built_in;
  std::string where;  // "idem.yml:3:14", "IDEM_REDIS_TTL", "--set redis_ttl"; empty: built in
};

struct Config {
  std::string store;       // URL, not redacted; empty: none given
  ServiceOptions service;  // policy, biz_types, timeout
  http::Policy http;
  ServeOptions serve;
  std::vector<Setting> settings;  // every one, in the order of the table, then per biz_type
};

// As after --set: {"redis_ttl", "10s"}.
struct ConfigFlag {
  std::string name;
  std::string value;
  std::string where{};  // the option it stands for: "--store"; empty: "--set NAME"
};

struct ConfigSources {
  std::string file;  // path; empty: no file. One that is named and missing is an error
  // nullptr: the process's environment. Else looks a variable up.
  std::function<std::optional<std::string>(const std::string& name)> environment;
  std::vector<ConfigFlag> flags;
  // Judges the store's URL beyond its form, for those who know which stores there are (core names
  // none); nullptr: every scheme will do.
  std::function<result<void>(const StoreUrl&)> check_store;
};

// invalid_argument with one line per fault, each starting with its place; cannot_open if the file
// cannot be read. Thread safe.
[[nodiscard]] result<Config> load_config(const ConfigSources& sources);

// The same from a text; `name` stands for the file in messages.
[[nodiscard]] result<Config> load_config_text(std::string_view text, const std::string& name,
                                              const ConfigSources& sources = {});

// What a setting is: for documentation, the JSON Schema and command-line completion.
struct SettingInfo {
  std::string_view name;
  std::string_view form;  // "duration", "seconds", "count", "number", "bool", "text", "list",
                          // "routes", or the words it may be, joined by "|"
  std::string_view help;
  bool per_biz_type = false;
};
[[nodiscard]] std::span<const SettingInfo> setting_infos();

// The JSON Schema for editors, as it stands in docs/idem.schema.json.
[[nodiscard]] std::string config_schema();

// "IDEM_REDIS_TTL" for "redis_ttl", "IDEM_HTTP_STRICT" for "http.strict".
[[nodiscard]] std::string environment_name(std::string_view setting);

}  // namespace idem
