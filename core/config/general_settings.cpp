// The settings of store, HTTP layer and `idem serve`.
#include "idem/redacted.hpp"
#include "idem/store_url.hpp"
#include "settings.hpp"
#include "values.hpp"

namespace idem::config {
namespace {

constexpr std::array<std::pair<std::string_view, OnDoubt>, 2> kOnDoubt{
    {{"hold", OnDoubt::hold}, {"retry", OnDoubt::retry}}};

Error wrong(std::string what) { return idem::fail(errc::invalid_argument, std::move(what)); }

// --- members of a part of the Config, by pointer -----------------------------------------------

template <auto Parse, auto Part, auto Member>
result<void> set(Config& config, const Value& value) {
  auto parsed = Parse(value);
  if (!parsed) return parsed.error();
  config.*Part.*Member = *parsed;
  return {};
}
template <const auto& Words, auto Part, auto Member>
result<void> set_word(Config& config, const Value& value) {
  auto parsed = to_word(value, Words);
  if (!parsed) return parsed.error();
  config.*Part.*Member = *parsed;
  return {};
}
template <const auto& Words, auto Part, auto Member>
std::string show_word(const Config& config) {
  return from_word(config.*Part.*Member, Words);
}
template <auto Part, auto Member>
std::string show_text(const Config& config) {
  return config.*Part.*Member;
}
template <auto Part, auto Member>
std::string show_duration(const Config& config) {
  return format_duration(config.*Part.*Member);
}
template <auto Part, auto Member>
std::string show_count(const Config& config) {
  return std::to_string(config.*Part.*Member);
}
template <auto Part, auto Member>
std::string show_bytes(const Config& config) {
  return from_bytes(config.*Part.*Member);
}

// --- texts with rules of their own -------------------------------------------------------------

result<std::string> to_header(const Value& value) {
  if (!http::is_header_name(value.text)) return wrong("'" + value.text + "' is no header name");
  if (!http::is_replayable_header(value.text)) {
    return wrong("'" + value.text + "' has a meaning of its own in HTTP");
  }
  return value.text;
}
result<std::string> to_text(const Value& value) { return value.text; }
result<std::string> to_tenant(const Value& value) {
  if (auto checked = check_key({value.text, {}, "-"}); !checked) return checked.error();
  return value.text;
}
result<std::string> to_path(const Value& value) {
  if (value.text != "none" && !value.text.starts_with('/')) {
    return wrong("'" + value.text + "' is not a path (/healthz) or none");
  }
  return value.text == "none" ? std::string() : value.text;
}
result<std::string> to_upstream(const Value& value) {
  const auto url = StoreUrl::parse(value.text);
  if (!url || url->scheme() != "http" || url->host().empty() ||
      !(url->path().empty() || url->path() == "/") || value.text.find('?') != std::string::npos) {
    return wrong("'" + redacted(value.text) +
                 "' is not an upstream; write it like http://127.0.0.1:9000");
  }
  if (!url->user().empty() || !url->password().empty()) {
    return wrong("an upstream has no user or password: none is sent to it");
  }
  return value.text;
}
result<std::string> to_listen(const Value& value) {
  const auto url = StoreUrl::parse("http://" + value.text);
  const std::size_t colon = value.text.rfind(':');
  const bool any_port = value.text.ends_with(":0");
  if (colon == std::string::npos || colon == 0 || (!any_port && (!url || !url->port()))) {
    return wrong("'" + value.text +
                 "' is not an address to listen on; write it like 127.0.0.1:8080");
  }
  return value.text;
}

result<void> set_store(Config& config, const Value& value) {
  if (auto url = StoreUrl::parse(value.text); !url) return url.error();
  config.store = value.text;
  return {};
}
std::string show_store(const Config& config) {
  const auto url = StoreUrl::parse(config.store);
  return url ? url->redacted() : std::string("none");
}

result<void> set_timeout(Config& config, const Value& value) {
  auto parsed = to_duration(value);
  if (!parsed) return parsed.error();
  config.service.timeout = *parsed;
  return {};
}
std::string show_timeout(const Config& config) { return format_duration(config.service.timeout); }

result<void> set_strict(Config& config, const Value& value) {
  auto parsed = to_bool(value);
  if (!parsed) return parsed.error();
  config.http.strict = *parsed;
  return {};
}
std::string show_strict(const Config& config) { return from_bool(config.http.strict); }

result<void> set_stored_headers(Config& config, const Value& value) {
  std::string faults;
  for (const std::string& item : value.items) {
    if (http::is_header_name(item) && http::is_replayable_header(item)) continue;
    faults.append(faults.empty() ? "'" : ", '").append(item);
    faults.append(http::is_header_name(item) ? "' is never replayed" : "' is no header name");
  }
  if (!faults.empty()) return wrong(std::move(faults));
  config.http.stored_headers = value.items;
  return {};
}
std::string show_stored_headers(const Config& config) {
  std::string text;
  for (const std::string& name : config.http.stored_headers) {
    text.append(text.empty() ? "" : ",").append(name);
  }
  return text;
}

// Routes are read by the file's reader: they have a form of their own.
result<void> set_routes(Config&, const Value&) {
  return wrong("routes can be set in the file only");
}
std::string show_routes(const Config& config) {
  std::string text;
  for (const Route& route : config.serve.routes) {
    text.append(text.empty() ? "" : ", ").append(route.method).append(" ").append(route.path);
    text.append(" ").append(from_word(route.key, kKeyUses));
    if (!route.biz_type.empty()) text.append(" ").append(route.biz_type);
  }
  return text.empty() ? "none" : text;
}

constexpr auto kHttp = &Config::http;
constexpr auto kServe = &Config::serve;
using H = http::Policy;
using S = ServeOptions;

template <auto Member>
constexpr GeneralSetting duration(std::string_view name, std::string_view help) {
  return {
      {name, "duration", help}, set<to_duration, kServe, Member>, show_duration<kServe, Member>};
}
template <auto Member>
constexpr GeneralSetting count(std::string_view name, std::string_view help) {
  return {{name, "count", help}, set<to_count, kServe, Member>, show_count<kServe, Member>};
}
template <auto Member>
constexpr GeneralSetting bytes(std::string_view name, std::string_view help) {
  return {{name, "count", help}, set<to_count, kServe, Member>, show_bytes<kServe, Member>};
}

constexpr std::array kSettings{
    GeneralSetting{{"key_header", "text", "the request header that carries the key"},
                   set<to_header, kHttp, &H::key_header>,
                   show_text<kHttp, &H::key_header>},
    GeneralSetting{
        {"store", "text", "store URL, or front and back of a tiered store"}, set_store, show_store},
    GeneralSetting{{"timeout", "duration", "of one call to the store, retries and all"},
                   set_timeout,
                   show_timeout},
    GeneralSetting{{"http.key", "required|optional|off", "whether a request needs a key"},
                   set_word<kKeyUses, kHttp, &H::key>,
                   show_word<kKeyUses, kHttp, &H::key>},
    GeneralSetting{
        {"http.strict", "bool", "accept only the quoted form of a key"}, set_strict, show_strict},
    GeneralSetting{{"http.replayed_header", "text", "the header that marks a replay"},
                   set<to_header, kHttp, &H::replayed_header>,
                   show_text<kHttp, &H::replayed_header>},
    GeneralSetting{{"http.ttl_header", "text", "the header that tells how long a result is kept"},
                   set<to_header, kHttp, &H::ttl_header>,
                   show_text<kHttp, &H::ttl_header>},
    GeneralSetting{{"http.documentation", "text", "what the Link header of a 400 points to"},
                   set<to_text, kHttp, &H::documentation>,
                   show_text<kHttp, &H::documentation>},
    GeneralSetting{{"http.stored_headers", "list", "response headers that are kept for replay"},
                   set_stored_headers,
                   show_stored_headers},
    GeneralSetting{{"serve.listen", "text", "HOST:PORT; port 0: any free one"},
                   set<to_listen, kServe, &S::listen>,
                   show_text<kServe, &S::listen>},
    GeneralSetting{{"serve.upstream", "text", "http://HOST:PORT"},
                   set<to_upstream, kServe, &S::upstream>,
                   show_text<kServe, &S::upstream>},
    GeneralSetting{{"serve.tenant", "text", "tenant of every request"},
                   set<to_tenant, kServe, &S::tenant>,
                   show_text<kServe, &S::tenant>},
    GeneralSetting{
        {"serve.routes", "routes", "which requests need a key: method, path, key, biz_type"},
        set_routes,
        show_routes},
    GeneralSetting{{"serve.on_5xx", "hold|retry", "after an upstream's 5xx that may have acted"},
                   set_word<kOnDoubt, kServe, &S::on_5xx>,
                   show_word<kOnDoubt, kServe, &S::on_5xx>},
    GeneralSetting{{"serve.on_cut", "hold|retry", "after a connection that broke in the middle"},
                   set_word<kOnDoubt, kServe, &S::on_cut>,
                   show_word<kOnDoubt, kServe, &S::on_cut>},
    GeneralSetting{{"serve.health_path", "text", "path of the health check, or none"},
                   set<to_path, kServe, &S::health_path>,
                   show_text<kServe, &S::health_path>},
    GeneralSetting{{"serve.metrics_path", "text", "path of the Prometheus text, or none"},
                   set<to_path, kServe, &S::metrics_path>,
                   show_text<kServe, &S::metrics_path>},
    bytes<&S::request_bytes_max>("serve.request_bytes_max", "largest request body; more: 413"),
    bytes<&S::response_bytes_max>("serve.response_bytes_max", "largest upstream body; more: 502"),
    bytes<&S::header_bytes_max>("serve.header_bytes_max", "largest request head; more: 431"),
    count<&S::connections_max>("serve.connections_max", "connections at once; more are told 503"),
    count<&S::threads>("serve.threads", "threads that move bytes"),
    count<&S::store_threads>("serve.store_threads", "threads that wait for the store"),
    duration<&S::header_time>("serve.header_time", "for a request's head to arrive"),
    duration<&S::body_time>("serve.body_time", "for a request's body to arrive"),
    duration<&S::idle_time>("serve.idle_time", "between two requests of a connection"),
    duration<&S::upstream_time>("serve.upstream_time", "for the upstream to answer"),
    duration<&S::connect_time>("serve.connect_time", "for a connection to the upstream"),
    duration<&S::grace>("serve.grace", "for what runs, after SIGTERM"),
    duration<&S::sweep_every>("serve.sweep_every", "between two rounds of cleaning"),
};

}  // namespace

std::span<const GeneralSetting> general_settings() { return kSettings; }

}  // namespace idem::config
