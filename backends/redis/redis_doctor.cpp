// What may be wrong with a Redis server, for `idem store doctor`.
#include <algorithm>
#include <charconv>
#include <cstdio>

#include "idem/clock.hpp"
#include "store_impl.hpp"
#include "transport.hpp"

namespace idem::redis {
namespace {

using Severity = Finding::Severity;

constexpr Micros kRoundTripMuch = std::chrono::milliseconds(50);
constexpr Micros kClockSome = std::chrono::seconds(1);
constexpr Micros kClockMuch = std::chrono::seconds(30);

std::int64_t number_of(std::string_view text) {
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

std::string milliseconds_of(Micros time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f ms", static_cast<double>(time.count()) / 1000);
  return text;
}

class Examination {
 public:
  Examination(Parts& parts, const DiagnoseOptions& options, Findings& findings)
      : parts_(parts), options_(options), findings_(findings) {}

  // False: nobody answers there.
  bool reach(const ConnectionPtr& server) {
    const Time deadline = system_clock().now() + parts_.options.connect_timeout.micros();
    for (;;) {
      const auto pong = ask(server, {"PING"});
      if (pong) break;
      const bool denied = pong.error().code == errc::denied;
      if (!denied && system_clock().now() < deadline) continue;
      add(server, Severity::bad, denied ? "password" : "reach", pong.error().message,
          denied ? "check user and password of the URL"
                 : "check that the server runs, and its address");
      return false;
    }
    const Time sent = system_clock().now();
    static_cast<void>(ask(server, {"PING"}));
    const Micros took = system_clock().now() - sent;
    add(server, took > kRoundTripMuch ? Severity::warn : Severity::ok, "round trip",
        milliseconds_of(took), took > kRoundTripMuch ? "move the server nearer to its users" : "");
    return true;
  }

  void look_at(const ConnectionPtr& server) {
    look_at_role(server);
    look_at_eviction(server);
    look_at_persistence(server);
    look_at_clock(server);
  }

 private:
  void add(const ConnectionPtr& server, Severity severity, std::string setting, std::string what,
           std::string remedy = {}) {
    const bool several = parts_.options.cluster;
    if (several) what = server->name() + ": " + what;
    findings_.push_back(
        {severity, std::move(setting), std::move(what), severity == Severity::ok ? "" : remedy});
  }

  result<Reply> ask(const ConnectionPtr& server, std::vector<std::string> words) {
    Command command;
    command.on = server;
    for (std::string& word : words) command.arguments.push_back(std::move(word));
    parts_.courier.run({&command, 1});
    if (command.failed()) return command.error;
    return std::move(command.reply);
  }

  // nullopt: it may not be asked.
  std::optional<std::string> setting(const ConnectionPtr& server, const std::string& name) {
    const auto reply = ask(server, {"CONFIG", "GET", name});
    if (!reply || reply->elements.size() != 2) return std::nullopt;
    return reply->elements[1].text;
  }

  void look_at_role(const ConnectionPtr& server) {
    const ServerGreeting greeting = server->greeting();
    add(server, number_of(greeting.version) >= 7 ? Severity::ok : Severity::bad, "version",
        greeting.version, "install Redis 7.0 or newer, or Valkey");
    const bool primary = greeting.role == "master";
    add(server, primary ? Severity::ok : Severity::bad, "role", greeting.role,
        "give the address of its primary, or promote it: redis-cli REPLICAOF NO ONE");
    if ((greeting.mode == "cluster") != parts_.options.cluster)
      add(server, Severity::bad, "mode", greeting.mode,
          parts_.options.cluster ? "use redis://: this is no cluster"
                                 : "use redis+cluster://: this is a node of a cluster");
  }

  void look_at_eviction(const ConnectionPtr& server) {
    const auto policy = setting(server, "maxmemory-policy");
    if (!policy)
      return add(server, Severity::warn, "maxmemory-policy", "CONFIG GET is forbidden",
                 "allow it (ACL SETUSER ... +config|get), or make sure that it is noeviction");
    add(server, *policy == "noeviction" ? Severity::ok : Severity::bad, "maxmemory-policy",
        *policy == "noeviction" ? *policy : *policy + ": a full server throws live claims away",
        "redis-cli CONFIG SET maxmemory-policy noeviction, and in redis.conf");
  }

  void look_at_persistence(const ConnectionPtr& server) {
    const auto append_only = setting(server, "appendonly");
    const auto sync = setting(server, "appendfsync");
    if (!append_only || !sync)
      return add(server, Severity::warn, "appendonly", "CONFIG GET is forbidden",
                 "allow it (ACL SETUSER ... +config|get)");
    const bool on = *append_only == "yes";
    const Durability found = !on                 ? Durability::none
                             : *sync == "always" ? Durability::power
                                                 : Durability::process;
    const auto wanted = std::max(options_.min_durability, parts_.options.min_durability);
    const bool too_little = wanted && found < *wanted;
    if (!on)
      return add(server, too_little ? Severity::bad : Severity::warn, "appendonly",
                 *append_only + ": a restart forgets every result, and all is done again",
                 "redis-cli CONFIG SET appendonly yes, and in redis.conf");
    add(server, Severity::ok, "appendonly", "yes");
    if (found == Durability::power) return add(server, Severity::ok, "appendfsync", *sync);
    add(server, too_little ? Severity::bad : Severity::warn, "appendfsync",
        *sync + ": a power cut may undo the last results",
        "redis-cli CONFIG SET appendfsync always, and in redis.conf");
  }

  // A caller judges by lengths of time alone; but people compare times, and a server that is
  // corrected by so much in one step ends leases early or late.
  void look_at_clock(const ConnectionPtr& server) {
    Clock& clock = parts_.clock;
    const Time before = clock.now();
    const auto reply = ask(server, {"TIME"});
    const Time after = clock.now();
    if (!reply || reply->elements.size() != 2)
      return add(server, Severity::warn, "clock", "TIME could not be asked",
                 "allow it: ACL SETUSER ... +time");
    const Time theirs(Micros(number_of(reply->elements[0].text) * 1'000'000 +
                             number_of(reply->elements[1].text)));
    const Micros off = theirs - (before + (after - before) / 2);
    const Micros size = off < Micros(0) ? -off : off;
    const Severity severity = size >= kClockMuch   ? Severity::bad
                              : size >= kClockSome ? Severity::warn
                                                   : Severity::ok;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(size).count();
    add(server, severity, "clock",
        severity == Severity::ok
            ? milliseconds_of(size) + (off < Micros(0) ? " behind" : " ahead")
            : std::to_string(seconds) + (off < Micros(0) ? " s behind" : " s ahead") +
                  " of this machine's",
        "set both clocks by NTP (chronyc makestep); not while claims are held");
  }

  Parts& parts_;
  const DiagnoseOptions& options_;
  Findings& findings_;
};

// Rights and replicas: what opening a store tries out.
void look_at_opening(RedisOptions options, Findings& findings) {
  options.evicting_is_warning = true;
  options.min_durability.reset();
  const std::uint32_t copies = options.wait_replicas;
  const auto store = RedisStore::open(std::move(options));
  if (!store && store.error().code == errc::denied) {
    findings.push_back({Severity::bad, "rights", store.error().message,
                        "ACL SETUSER with the rights that backends/redis/README.md lists"});
  } else if (!store) {
    const bool told = std::any_of(findings.begin(), findings.end(), [](const Finding& finding) {
      return finding.severity == Severity::bad;
    });
    if (!told) findings.push_back({Severity::bad, "open", store.error().message, "see above"});
  } else {
    findings.push_back({Severity::ok, "rights", "all that is needed", ""});
    bool confirmed = copies != 0;
    for (const std::string& warning : (*store)->warnings()) {
      // The rest is told setting by setting.
      if (warning.find("replicas confirm") != std::string::npos) {
        confirmed = false;
        findings.push_back({Severity::bad, "wait_replicas", warning,
                            "start the replicas, or ask for fewer with wait_replicas"});
      }
      if (warning.find("is forbidden: sweep") != std::string::npos)
        findings.push_back(
            {Severity::warn, "rights", warning, "ACL SETUSER ... +scan +strlen +getrange"});
    }
    if (confirmed)
      findings.push_back(
          {Severity::ok, "wait_replicas", std::to_string(copies) + " confirm each write", ""});
  }
}

}  // namespace

Findings diagnose(const StoreUrl& url, const DiagnoseOptions& options) {
  auto parsed = RedisOptions::from_url(url);
  if (!parsed) return {{Severity::bad, "url", parsed.error().message, "idem stores"}};
  parsed->clock = options.open.clock;
  std::unique_ptr<boost::asio::ssl::context> tls;
  if (parsed->tls) {
    auto made = make_tls_context(parsed->ca_file);
    if (!made) return {{Severity::bad, "ca", made.error().message, "name the CA's file: ?ca=FILE"}};
    tls = std::move(*made);
  }
  Findings findings;
  Parts parts(*parsed, std::move(tls));
  Examination examination(parts, options, findings);
  const ConnectionPtr first = parts.router.route("");
  if (!examination.reach(first)) return findings;
  std::vector<ConnectionPtr> servers{first};
  if (parsed->cluster) {
    const Time deadline = system_clock().now() + parsed->connect_timeout.micros();
    if (auto learned = parts.courier.learn_slots(deadline); learned) {
      servers = parts.router.holders();
    } else {
      findings.push_back({Severity::bad, "cluster", learned.error().message,
                          "redis-cli --cluster check HOST:PORT"});
    }
  }
  for (const ConnectionPtr& server : servers) {
    if (server == first || examination.reach(server)) examination.look_at(server);
  }
  look_at_opening(*parsed, findings);
  return findings;
}

}  // namespace idem::redis
