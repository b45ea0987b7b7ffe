// Configuration: what loads, what is refused and where, and which source wins.
#include "idem/config.hpp"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <fstream>
#include <map>
#include <sstream>

#include "idem/store_url.hpp"

namespace idem {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;
using ::testing::StartsWith;

// No variable is set.
ConfigSources no_environment() {
  ConfigSources sources;
  sources.environment = [](const std::string&) { return std::optional<std::string>(); };
  return sources;
}

result<Config> load(const std::string& text) {
  return load_config_text(text, "idem.yml", no_environment());
}

std::string fault_of(const std::string& text) {
  const auto config = load(text);
  return config ? "loaded" : config.error().message;
}

const Setting& setting(const Config& config, std::string_view name) {
  for (const Setting& one : config.settings) {
    if (one.name == name) return one;
  }
  throw std::runtime_error("no setting " + std::string(name));
}

// The configuration that the two articles print must work as it stands.
TEST(Config, TheArticlesExampleLoadsUnchanged) {
  const auto config = load(
      "idempotency:\n"
      "  enabled: true\n"
      "  key_header: Idempotency-Key\n"
      "  redis_ttl: 30s\n"
      "  db_timeout_clean_seconds: 600\n"
      "  return_original_result: true\n");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_TRUE(config->service.policy.enabled);
  EXPECT_EQ(config->http.key_header, "Idempotency-Key");
  EXPECT_EQ(config->service.policy.lease, Duration(30s));
  EXPECT_EQ(config->service.policy.stuck_after, Duration(600s));
  EXPECT_TRUE(config->service.policy.return_original_result);
}

TEST(Config, EverySettingOfTheStateMachineIsTaken) {
  const auto config = load(
      "idempotency:\n"
      "  store: sqlite:orders.db\n"
      "  timeout: 2s\n"
      "  result_ttl: 7d\n"
      "  failed_ttl: 1h\n"
      "  on_lapsed: hold\n"
      "  retry_failed: false\n"
      "  max_attempts: 3\n"
      "  max_total_lease: 10m\n"
      "  on_duplicate: wait\n"
      "  wait: 2s\n"
      "  max_result_bytes: 2MiB\n"
      "  oversize: tombstone\n"
      "  return_original_result: false\n");
  ASSERT_TRUE(config) << config.error().message;
  const Policy& policy = config->service.policy;
  EXPECT_EQ(config->store, "sqlite:orders.db");
  EXPECT_EQ(config->service.timeout, Duration(2s));
  EXPECT_EQ(policy.result_ttl, Duration(168h));
  EXPECT_EQ(policy.failed_ttl, Duration(1h));
  EXPECT_EQ(policy.on_lapsed, OnLapsed::hold);
  EXPECT_FALSE(policy.retry_failed);
  EXPECT_EQ(policy.max_attempts, 3U);
  EXPECT_EQ(policy.max_total_lease, Duration(10min));
  EXPECT_EQ(policy.on_duplicate, OnDuplicate::wait);
  EXPECT_EQ(policy.wait, Duration(2s));
  EXPECT_EQ(policy.max_result_bytes, 2U << 20);
  EXPECT_EQ(policy.oversize, Oversize::tombstone);
  EXPECT_FALSE(policy.return_original_result);
}

// A misspelt setting that is silently ignored runs requests twice.
TEST(Config, AnUnknownKeyIsRefusedWithPlaceAndSuggestion) {
  EXPECT_EQ(fault_of("idempotency:\n  enabled: true\n  key_heder: X\n"),
            "idem.yml:3:3: error: unknown key 'key_heder' (did you mean 'key_header'?)");
  EXPECT_EQ(fault_of("idempotncy:\n  enabled: true\n"),
            "idem.yml:1:1: error: unknown key 'idempotncy' (did you mean 'idempotency'?)");
  EXPECT_EQ(fault_of("idempotency:\n  http:\n    strikt: true\n"),
            "idem.yml:3:5: error: unknown key 'strikt' (did you mean 'strict'?)");
  EXPECT_EQ(fault_of("idempotency:\n  biz_types:\n    pay:\n      key_header: X\n"),
            "idem.yml:4:7: error: unknown key 'key_header'");
}

TEST(Config, EveryFaultIsToldAtOnce) {
  EXPECT_EQ(fault_of("idempotency:\n  enabeld: true\n  wait: 5\n"),
            "idem.yml:2:3: error: unknown key 'enabeld' (did you mean 'enabled'?)\n"
            "idem.yml:3:9: error: wait: '5' is not a duration: the unit is missing; write it like "
            "30s, 500ms, 0.5s, 1h30m");
}

// Lists too; and the store, whose kinds only the caller knows.
TEST(Config, EveryFaultOfAListAndOfTheStoreIsToldAtOnce) {
  EXPECT_EQ(fault_of("idempotency:\n"
                     "  http: {stored_headers: [Set-Cookie, ETag, 'a b', Date]}\n"
                     "  serve:\n"
                     "    routes:\n"
                     "      - {method: put, path: /orders}\n"
                     "      - {path: /ok}\n"
                     "      - {path: orders, key: always}\n"
                     "      - nothing\n"),
            "idem.yml:2:26: error: http.stored_headers: 'Set-Cookie' is never replayed, "
            "'a b' is no header name, 'Date' is never replayed\n"
            "idem.yml:5:18: error: method: 'put' matches no request: write PUT\n"
            "idem.yml:7:16: error: path: 'orders': it must start with '/'\n"
            "idem.yml:7:29: error: key: 'always' is none of required, optional, off\n"
            "idem.yml:8:9: error: serve.routes: a map of keys and values is expected, not a single "
            "value");
  EXPECT_THAT(fault_of("idempotency:\n  store: {front: a, back: b, side: c}\n"),
              ::testing::AllOf(StartsWith("idem.yml:2:18: error: front: "), HasSubstr("back: "),
                               HasSubstr("'side'")));

  ConfigSources sources = no_environment();
  sources.check_store = [](const StoreUrl& url) -> result<void> {
    if (url.scheme() == "memory") return {};
    return fail(errc::invalid_argument, "no kind of ours");
  };
  const auto faults = [&](const std::string& store) {
    const auto config =
        load_config_text("idempotency:\n  stroe: a\n  store: " + store + "\n", "i", sources);
    return config ? "loaded" : config.error().message;
  };
  EXPECT_EQ(faults("nothing:x"),
            "i:2:3: error: unknown key 'stroe' (did you mean 'store'?)\n"
            "i:3:10: error: store: no kind of ours");
  EXPECT_EQ(faults("'memory:'"), "i:2:3: error: unknown key 'stroe' (did you mean 'store'?)");
  // Only the one that is used is judged.
  sources.flags = {{"store", "memory:", "--store"}};
  EXPECT_EQ(faults("nothing:x"), "i:2:3: error: unknown key 'stroe' (did you mean 'store'?)");
}

// A route that matches nothing lets its requests through without a key.
TEST(Config, ARouteThatMatchesNoRequestIsRefused) {
  const auto route = [](const std::string& text) {
    return fault_of("idempotency:\n  serve: {routes: [{" + text + "}]}\n");
  };
  for (const char* const path :
       {"/", "/**", "/*", "/a/*", "/a/*/b", "/a/**", "/*/*/**", "/a//b", "/a/", "/a%2Fb"}) {
    EXPECT_EQ(route("path: '" + std::string(path) + "'"), "loaded") << path;
  }
  for (const char* const path : {"", "a", "*", "/a/**/b", "/**/", "/c/*d", "/c/d*", "/c/***",
                                 "/c/**d", "/a?b=1", "/a#b", "/a b", "/a/ü"}) {
    EXPECT_THAT(route("path: '" + std::string(path) + "'"), HasSubstr("error: path: ")) << path;
  }
  for (const char* const method : {"*", "PUT", "M-SEARCH"}) {
    EXPECT_EQ(route("method: '" + std::string(method) + "'"), "loaded") << method;
  }
  for (const char* const method : {"put", "Put", "P*", "", "PUT POST", "PUT,POST"}) {
    EXPECT_THAT(route("method: '" + std::string(method) + "'"), HasSubstr("error: method: "))
        << method;
  }
}

TEST(Config, YamlsOwnTrapsAreExplained) {
  EXPECT_EQ(fault_of("store: sqlite:a.db\n"),
            "idem.yml:1:1: error: unknown key 'store' (it stands under 'idempotency:', indented)");
  EXPECT_THAT(fault_of("http: {strict: true}\n"), HasSubstr("under 'idempotency:'"));
  EXPECT_EQ(fault_of("colour: red\n"), "idem.yml:1:1: error: unknown key 'colour'");
  EXPECT_EQ(fault_of("idempotency:\n  store: memory:\n"),
            "idem.yml:2:16: error: illegal map value (what ends with a colon stands in quotes: "
            "'memory:')");
  EXPECT_THAT(fault_of("idempotency:\n\tstore: sqlite:a\n"),
              ::testing::AllOf(StartsWith("idem.yml:2:"), HasSubstr("indented by blanks")));
  EXPECT_THAT(fault_of("idempotency:\n  http:\n  \tstrict: true\n"),
              HasSubstr("indented by blanks"));
  EXPECT_THAT(fault_of("idempotency:\n  wait: 'open\n"),
              ::testing::Not(HasSubstr("indented by blanks")));
}

TEST(Config, ARepeatedKeyIsRefused) {
  EXPECT_EQ(fault_of("idempotency:\n  wait: 1s\n  wait: 2s\n"),
            "idem.yml:3:3: error: key 'wait' stands twice (first in line 2)");
  EXPECT_EQ(fault_of("idempotency:\n  redis_ttl: 1s\n  lease: 2s\n"),
            "idem.yml:3:10: error: 'lease' and 'redis_ttl' are one setting; write one of them");
}

TEST(Config, WrongTypesAreRefused) {
  EXPECT_THAT(fault_of("idempotency:\n  enabled: \"true\"\n"),
              StartsWith("idem.yml:2:12: error: enabled: "));
  EXPECT_THAT(fault_of("idempotency:\n  enabled: yes\n"), HasSubstr("neither true nor false"));
  EXPECT_THAT(fault_of("idempotency:\n  enabled:\n"), HasSubstr("enabled: a single value"));
  EXPECT_THAT(fault_of("idempotency:\n  wait: [1s]\n"), HasSubstr("not a list"));
  EXPECT_THAT(fault_of("idempotency: 5\n"), HasSubstr("a map of keys and values is expected"));
  EXPECT_THAT(fault_of("idempotency:\n  on_lapsed: steal\n"),
              HasSubstr("on_lapsed: 'steal' is none of takeover, hold"));
  EXPECT_THAT(fault_of("idempotency:\n  max_attempts: 0\n"), HasSubstr("max_attempts"));
  EXPECT_THAT(fault_of("idempotency:\n  max_attempts: 4294967296\n"), HasSubstr("too large"));
  EXPECT_THAT(fault_of("idempotency:\n  max_result_bytes: 0\n"), HasSubstr("greater than zero"));
  EXPECT_THAT(fault_of("idempotency:\n  store: orders.db\n"), HasSubstr("starts with a scheme"));
}

// Aliases can blow a small file up to gigabytes; nesting can exhaust the stack.
TEST(Config, BombsAreRefused) {
  EXPECT_EQ(fault_of("idempotency:\n  store: &a memory:\n  key_header: *a\n"),
            "idem.yml:2:10: error: anchors are not allowed here");
  EXPECT_THAT(fault_of("idempotency:\n  store: *a\n"), HasSubstr("error: "));
  EXPECT_THAT(fault_of("idempotency: " + std::string(100000, '[')), HasSubstr("nested too deeply"));
  EXPECT_THAT(fault_of("idempotency: !!map {}\n"), HasSubstr("tags are not allowed"));
  EXPECT_THAT(fault_of("idempotency: {}\n---\nidempotency: {}\n"), HasSubstr("a second document"));
  EXPECT_THAT(fault_of("idempotency:\n  store: " + std::string(2 << 20, 'x')),
              HasSubstr("larger than 1 MiB"));
  EXPECT_THAT(fault_of(std::string("idempotency:\n\0", 14)), HasSubstr("NUL"));
  EXPECT_THAT(fault_of("idempotency:\n  wait: 'open\n"), StartsWith("idem.yml:"));
}

TEST(Config, DurationsMustFitTogether) {
  EXPECT_EQ(fault_of("idempotency:\n  redis_ttl: 30s\n  result_ttl: 10s\n"),
            "idem.yml:3:15: error: result_ttl (10s) is shorter than redis_ttl (30s)");
  EXPECT_EQ(fault_of("idempotency:\n  redis_ttl: 30s\n  db_timeout_clean_seconds: 29\n"),
            "idem.yml:3:29: error: db_timeout_clean_seconds (29s) is shorter than redis_ttl (30s)");
  EXPECT_EQ(fault_of("idempotency:\n  redis_ttl: 20m\n"),
            "idem.yml:2:14: error: db_timeout_clean_seconds (10m, the default) is shorter than "
            "redis_ttl (20m)");
  EXPECT_THAT(fault_of("idempotency:\n  biz_types:\n    pay:\n      redis_ttl: 11m\n"),
              StartsWith("idem.yml:4:18: error: "));
}

TEST(Config, ABizTypeOverridesWhatItNames) {
  const auto config = load(
      "idempotency:\n"
      "  redis_ttl: 20s\n"
      "  biz_types:\n"
      "    pay: {on_lapsed: hold, result_ttl: 72h}\n"
      "    mail: {lease: 5s}\n");
  ASSERT_TRUE(config) << config.error().message;
  const Policy pay = config->service.biz_types.at("pay").apply_to(config->service.policy);
  EXPECT_EQ(pay.on_lapsed, OnLapsed::hold);
  EXPECT_EQ(pay.result_ttl, Duration(72h));
  EXPECT_EQ(pay.lease, Duration(20s));
  EXPECT_EQ(config->service.biz_types.at("mail").lease, Duration(5s));
  EXPECT_EQ(setting(*config, "biz_types.pay.on_lapsed").value, "hold");
}

TEST(Config, DefaultFileEnvironmentFlagInThisOrder) {
  std::map<std::string, std::string> variables;
  ConfigSources sources;
  sources.environment = [&](const std::string& name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  };
  const auto lease_of = [&](const std::string& text) {
    const auto config = load_config_text(text, "idem.yml", sources);
    EXPECT_TRUE(config) << config.error().message;
    const Setting& found = setting(*config, "redis_ttl");
    return found.value + " " + std::string(to_string(found.origin)) + " " + found.where;
  };
  EXPECT_EQ(lease_of("idempotency: {}\n"), "30s default ");
  EXPECT_EQ(lease_of("idempotency:\n  redis_ttl: 20s\n"), "20s file idem.yml:2:14");
  variables["IDEM_REDIS_TTL"] = "15s";
  EXPECT_EQ(lease_of("idempotency:\n  redis_ttl: 20s\n"), "15s environment IDEM_REDIS_TTL");
  sources.flags = {{"redis_ttl", "10s"}};
  EXPECT_EQ(lease_of("idempotency:\n  redis_ttl: 20s\n"), "10s flag --set redis_ttl");
}

// Every setting but the two with a form of their own can be given in all three ways.
TEST(Config, PrecedenceHoldsForEverySetting) {
  const auto example = [](const SettingInfo& info) -> std::string {
    if (info.form == "duration") return "45s";
    if (info.form == "seconds") return "45";
    if (info.form == "bool") return "true";
    if (info.form == "count" || info.form == "number") return "7";
    if (info.name == "store") return "memory:";
    if (info.name == "serve.listen") return "127.0.0.1:81";
    if (info.name == "serve.upstream") return "http://h:82";
    if (info.form == "text") return info.name.ends_with("path") ? "/p" : "Text";
    if (info.form == "list") return "ETag,Link";
    return std::string(info.form.substr(0, info.form.find('|')));
  };
  for (const SettingInfo& info : setting_infos()) {
    if (info.form == "routes") continue;
    ConfigSources sources;
    sources.environment = [&](const std::string& name) {
      return name == environment_name(info.name) ? std::optional(example(info)) : std::nullopt;
    };
    const auto by_environment = load_config_text("idempotency: {}\n", "idem.yml", sources);
    ASSERT_TRUE(by_environment) << info.name << ": " << by_environment.error().message;
    EXPECT_EQ(setting(*by_environment, info.name).origin, Origin::environment) << info.name;
    sources.flags = {{std::string(info.name), example(info)}};
    const auto by_flag = load_config_text("idempotency: {}\n", "idem.yml", sources);
    ASSERT_TRUE(by_flag) << info.name << ": " << by_flag.error().message;
    EXPECT_EQ(setting(*by_flag, info.name).origin, Origin::flag) << info.name;
  }
}

TEST(Config, FaultsInEnvironmentAndFlagsNameThem) {
  ConfigSources sources = no_environment();
  sources.flags = {{"redis_tll", "10s"}};
  EXPECT_EQ(load_config(sources).error().message,
            "--set redis_tll: error: unknown key 'redis_tll' (did you mean 'redis_ttl'?)");
  sources.flags = {{"biz_types.pay.wait", "0s"}};
  EXPECT_THAT(load_config(sources).error().message,
              StartsWith("--set biz_types.pay.wait: error: wait: '0s' is not a duration"));
  sources.flags = {{"serve.upstream", "x", "--upstream"}};
  EXPECT_THAT(load_config(sources).error().message, StartsWith("--upstream: error: "));
  sources.flags.clear();
  sources.environment = [](const std::string& name) {
    return name == "IDEM_WAIT" ? std::optional<std::string>("soon") : std::nullopt;
  };
  EXPECT_THAT(load_config(sources).error().message, StartsWith("IDEM_WAIT: error: wait: 'soon'"));
}

TEST(Config, AMisspeltVariableIsAFault) {
  ASSERT_EQ(setenv("IDEM_REDIS_TLL", "10s", 1), 0);
  const auto config = load_config({});
  unsetenv("IDEM_REDIS_TLL");
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().message,
            "IDEM_REDIS_TLL: error: unknown variable (did you mean 'IDEM_REDIS_TTL'?)");
}

TEST(Config, ATieredStoreCanBeTwoKeys) {
  const auto config = load(
      "idempotency:\n"
      "  store:\n"
      "    front: redis://:s3cret@h:6379/0\n"
      "    back: sqlite:o.db?busy_timeout=5s\n");
  ASSERT_TRUE(config) << config.error().message;
  auto url = StoreUrl::parse(config->store);
  ASSERT_TRUE(url);
  EXPECT_EQ(url->scheme(), "tiered");
  EXPECT_EQ(url->text("front"), "redis://:s3cret@h:6379/0");
  EXPECT_EQ(url->text("back"), "sqlite:o.db?busy_timeout=5s");
  // No password in what is shown.
  EXPECT_THAT(setting(*config, "store").value, ::testing::Not(HasSubstr("s3cret")));
}

TEST(Config, HttpAndServeSettings) {
  const auto config = load(
      "idempotency:\n"
      "  http: {key: optional, strict: true, stored_headers: [Content-Type, X-Order]}\n"
      "  serve:\n"
      "    upstream: http://127.0.0.1:9000\n"
      "    on_5xx: retry\n"
      "    health_path: none\n"
      "    request_bytes_max: 64KiB\n"
      "    routes:\n"
      "      - {method: POST, path: /pay, key: required, biz_type: pay}\n"
      "      - {path: /public/**, key: off}\n");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->http.key, http::KeyUse::optional);
  EXPECT_TRUE(config->http.strict);
  EXPECT_EQ(config->http.stored_headers, (std::vector<std::string>{"Content-Type", "X-Order"}));
  EXPECT_EQ(config->serve.on_5xx, OnDoubt::retry);
  EXPECT_EQ(config->serve.on_cut, OnDoubt::hold);
  EXPECT_EQ(config->serve.health_path, "");
  EXPECT_EQ(config->serve.request_bytes_max, 64U << 10);
  ASSERT_EQ(config->serve.routes.size(), 2U);
  EXPECT_EQ(config->serve.routes[0].biz_type, "pay");
  EXPECT_EQ(config->serve.routes[1].key, http::KeyUse::off);
  EXPECT_EQ(setting(*config, "serve.routes").value, "POST /pay required pay, * /public/** off");
}

TEST(Config, OnePathCannotBeTwoPages) {
  EXPECT_THAT(
      fault_of("idempotency:\n  serve:\n    metrics_path: /healthz\n"),
      ::testing::AllOf(HasSubstr("serve.health_path and serve.metrics_path"), HasSubstr(":3:")));
  EXPECT_TRUE(load("idempotency:\n  serve: {health_path: none, metrics_path: none}\n"));
}

TEST(Config, ADirectoryIsNoFile) {
  ConfigSources sources;
  sources.file = ".";
  const auto config = load_config(sources);
  ASSERT_FALSE(config);
  EXPECT_THAT(config.error().message, HasSubstr("directory"));
}

TEST(Config, HttpSettingsThatWouldLeakAreRefused) {
  EXPECT_THAT(fault_of("idempotency:\n  http:\n    stored_headers: [Set-Cookie]\n"),
              HasSubstr("'Set-Cookie' is never replayed"));
  EXPECT_THAT(fault_of("idempotency:\n  key_header: 'a b'\n"), HasSubstr("no header name"));
  EXPECT_THAT(fault_of("idempotency:\n  key_header: Authorization\n"), HasSubstr("of its own"));
  EXPECT_THAT(fault_of("idempotency:\n  serve: {upstream: 'ftp://h'}\n"), HasSubstr("upstream"));
  for (const char* const secret : {"http://u:secret@h", "http://secret@h", "ftp://u:secret@h",
                                   "http://u:secret@h:99999", "http://h:9/?token=secret"}) {
    EXPECT_THAT(fault_of("idempotency:\n  serve: {upstream: '" + std::string(secret) + "'}\n"),
                ::testing::AllOf(HasSubstr("upstream"), ::testing::Not(HasSubstr("secret"))));
  }
  EXPECT_THAT(fault_of("idempotency:\n  serve: {routes: [{pth: /}]}\n"),
              HasSubstr("did you mean 'path'?"));
}

// Editors check against the schema; it must know exactly what the loader knows.
TEST(Config, TheSchemaFileIsTheTableOfSettings) {
  std::ifstream file(IDEM_SCHEMA_FILE);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), config_schema()) << "run: idem config schema > docs/idem.schema.json";
  for (const SettingInfo& info : setting_infos()) {
    const std::string_view leaf = info.name.substr(info.name.rfind('.') + 1);
    EXPECT_THAT(text.str(), HasSubstr("\"" + std::string(leaf) + "\""));
  }
}

}  // namespace
}  // namespace idem
