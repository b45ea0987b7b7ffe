// Opening by URL, and the variants that tests and measurements run over.
#include "idem/tiered_store.hpp"
#include "late_store.hpp"

namespace idem {
namespace {

// `open`: open_in_registry or beside_in_registry.
template <class Opened>
result<Opened> open_tier(StoreUrl& url, std::string_view name, const OpenOptions& options,
                         result<Opened> (*open)(std::string_view, const OpenOptions&)) {
  const auto text = url.text(name);
  if (!text) {
    return fail(errc::invalid_argument,
                "tiered: needs front and back, each a percent-encoded URL: "
                "tiered:?front=redis%3A%2F%2Fh%3A6379&back=mysql%3A%2F%2Fh%2Fdb (missing: " +
                    std::string(name) + ")");
  }
  auto store = open(*text, options);
  if (!store) return fail(store.error().code, std::string(name) + ": " + store.error().message);
  return store;
}

result<TieredOptions> options_of(StoreUrl& url, const OpenOptions& options) {
  TieredOptions made;
  made.clock = options.clock;
  auto circuit = url.duration("circuit");
  if (!circuit) return circuit.error();
  if (*circuit) made.circuit = **circuit;
  const auto front = url.text("front");
  const auto back = url.text("back");
  if (front && back && same_store_in_registry(*front, *back, options.registry)) {
    return fail(errc::invalid_argument,
                "tiered: front and back are the same store; a front must be another one");
  }
  if (auto known = url.check_all_known(); !known) return known.error();
  return made;
}

// The front is away, not wrong: the back decides without it, and it is used once it is there.
result<StorePtr> open_later(StoreUrl& url, const OpenOptions& options, const Error& why) {
  if (options.warn) options.warn(why.message + "; used once it is there");
  const auto parsed = StoreUrl::parse(url.text("front").value_or(""));
  if (!parsed) return parsed.error();
  const auto backend = backend_in_registry(*parsed, options.registry);
  if (!backend) return backend.error();
  // The registry is borrowed until this call returns.
  const auto registry = std::make_shared<const std::vector<Backend>>(options.registry.begin(),
                                                                     options.registry.end());
  OpenOptions again = options;
  again.warn = nullptr;
  return tiered::make_late_store((*backend)->name, [=, front = *parsed, open = (*backend)->open] {
    OpenOptions now = again;
    now.registry = *registry;
    return open(front, now);
  });
}

result<StorePtr> open_tiered(const StoreUrl& parsed, const OpenOptions& options) {
  StoreUrl url = parsed;
  auto made = options_of(url, options);
  if (!made) return made.error();
  auto back = open_tier(url, "back", options, open_in_registry);
  if (!back) return back.error();
  auto front = open_tier(url, "front", options, open_in_registry);
  if (!front && front.error().code == errc::unavailable)
    front = open_later(url, options, front.error());
  if (!front) return front.error();
  made->front = std::move(*front);
  made->back = std::move(*back);
  return make_tiered_store(std::move(*made));
}

result<Fixture> open_beside(const StoreUrl& parsed, const OpenOptions& options) {
  StoreUrl url = parsed;
  auto made = options_of(url, options);
  if (!made) return made.error();
  auto front = open_tier(url, "front", options, beside_in_registry);
  if (!front) return front.error();
  auto back = open_tier(url, "back", options, beside_in_registry);
  if (!back) return back.error();
  made->front = front->store;
  made->back = back->store;
  auto store = make_tiered_store(std::move(*made));
  if (!store) return store.error();
  auto both = std::make_shared<std::pair<Fixture, Fixture>>(std::move(*front), std::move(*back));
  return Fixture{"", std::move(both), std::move(*store)};
}

// Both tiers' findings, each under its name. Only the back has to last.
Findings diagnose_tiered(const StoreUrl& parsed, const DiagnoseOptions& options) {
  StoreUrl url = parsed;
  Findings findings;
  for (const std::string name : {"front", "back"}) {
    const auto text = url.text(name);
    if (!text) {
      findings.push_back({Finding::Severity::bad, name, "it is missing in the URL",
                          "tiered:?front=URL&back=URL, each percent-encoded"});
      continue;
    }
    DiagnoseOptions tier = options;
    if (name == "front") tier.min_durability.reset();
    for (Finding& finding : diagnose_in_registry(*text, tier)) {
      finding.setting = name + " " + finding.setting;
      findings.push_back(std::move(finding));
    }
  }
  return findings;
}

result<Fixture> backend_fixture(std::string_view name, std::string_view variant,
                                const OpenOptions& options) {
  for (const Backend& backend : options.registry) {
    if (backend.name == name) return backend.fixture(variant, options);
  }
  return fail(errc::unsupported, "this build has no backend '" + std::string(name) + "'");
}

std::string percent_encoded(std::string_view text) {
  static constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) {
      out += c;
    } else {
      out += '%';
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    }
  }
  return out;
}

result<Fixture> tier_of(Fixture front, Fixture back, const OpenOptions& options) {
  auto store = make_tiered_store({front.store, back.store, options.clock});
  if (!store) return store.error();
  const std::string url =
      "tiered:?front=" + percent_encoded(front.url) + "&back=" + percent_encoded(back.url);
  auto both = std::make_shared<std::pair<Fixture, Fixture>>(std::move(front), std::move(back));
  return Fixture{url, std::move(both), std::move(*store)};
}

// "front+back"; a back of its own is "front+(front+back)".
result<Fixture> tiered_fixture(std::string_view variant, const OpenOptions& options) {
  const auto one = [&](std::string_view name) { return backend_fixture(name, "", options); };
  if (variant.empty() || variant == "memory+sqlite") {
    auto front = one("memory");
    auto back = one("sqlite");
    if (!front) return front.error();
    if (!back) return back.error();
    return tier_of(std::move(*front), std::move(*back), options);
  }
  auto redis = one("redis");
  auto mysql = one("mysql");
  if (!redis) return redis.error();
  if (!mysql) return mysql.error();
  auto servers = tier_of(std::move(*redis), std::move(*mysql), options);
  if (!servers || variant == "redis+mysql") return servers;
  if (variant != "memory+redis+mysql") {
    return fail(errc::invalid_argument, "tiered: no variant '" + std::string(variant) + "'");
  }
  auto front = one("memory");
  if (!front) return front.error();
  return tier_of(std::move(*front), std::move(*servers), options);
}

}  // namespace

Backend tiered_backend() {
  return {.name = "tiered",
          .schemes = {"tiered"},
          .url_forms = {"tiered:?front=URL&back=URL (each percent-encoded) &circuit=500ms"},
          .summary = "a fast front refuses and replays, an authoritative back decides",
          .client = "",
          .open = open_tiered,
          .variants = {"memory+sqlite", "redis+mysql", "memory+redis+mysql"},
          .fixture = tiered_fixture,
          .beside = open_beside,
          .diagnose = diagnose_tiered};
}

}  // namespace idem
