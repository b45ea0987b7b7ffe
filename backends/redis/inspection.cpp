// What is checked before a Redis store is used: the server, its settings, our rights.
#include <charconv>
#include <map>

#include "idem/clock.hpp"
#include "record_codec.hpp"
#include "store_impl.hpp"

namespace idem::redis {
namespace {

constexpr int kMajorMin = 7;  // SET with NX and GET together
// Away from every record: no storage name begins so.
constexpr std::string_view kProbe = "~probe:";

result<Reply> ask(Parts& parts, const ConnectionPtr& server, std::vector<std::string> words) {
  Command command;
  command.on = server;
  for (std::string& word : words) command.arguments.push_back(std::move(word));
  parts.courier.run({&command, 1});
  if (command.failed()) return command.error;
  return std::move(command.reply);
}

Error at(const ConnectionPtr& server, Error error) {
  if (error.message.find(server->name()) == std::string::npos) {
    error.message = server->name() + ": " + error.message;
  }
  return error;
}

// PING until it is answered, within connect_timeout: the first connection takes longer than a call.
result<void> reach(Parts& parts, const ConnectionPtr& server) {
  const Time deadline = system_clock().now() + parts.options.connect_timeout.micros();
  for (;;) {
    const auto pong = ask(parts, server, {"PING"});
    if (pong) return {};
    if (pong.error().code == errc::denied) return at(server, pong.error());
    if (system_clock().now() < deadline) continue;
    Error error = at(server, pong.error());
    error.code = errc::unavailable;
    return error;
  }
}

result<void> check_greeting(const Parts& parts, const ConnectionPtr& server) {
  const ServerGreeting greeting = server->greeting();
  int major = 0;
  std::from_chars(greeting.version.data(), greeting.version.data() + greeting.version.size(),
                  major);
  if (major < kMajorMin) {
    return idem::fail(errc::cannot_open, server->name() + " is version " + greeting.version +
                                             "; Redis 7.0 or Valkey is needed");
  }
  if (greeting.role != "master") {
    return idem::fail(errc::read_only, server->name() + " is a " + greeting.role +
                                           ": give the address of its primary");
  }
  if (greeting.mode == "cluster" && !parts.options.cluster) {
    return idem::fail(errc::cannot_open,
                      server->name() + " is a node of a cluster: use redis+cluster://");
  }
  if (greeting.mode != "cluster" && parts.options.cluster) {
    return idem::fail(errc::cannot_open, server->name() + " is no cluster: use redis://");
  }
  return {};
}

// INFO's "name:value" lines.
std::string info_value(std::string_view info, std::string_view name) {
  const std::string mark = "\n" + std::string(name) + ":";
  const std::size_t found = info.find(mark);
  if (found == std::string_view::npos) return {};
  const std::size_t begin = found + mark.size();
  return std::string(info.substr(begin, info.find('\r', begin) - begin));
}

struct Settings {
  std::string eviction;    // "" if it could not be found out
  std::string appendonly;  // "yes", "no", ""
  std::string appendfsync;
};

Settings read_settings(Parts& parts, const ConnectionPtr& server) {
  Settings found;
  const auto get = [&](const std::string& name) -> std::string {
    const auto reply = ask(parts, server, {"CONFIG", "GET", name});
    return reply && reply->elements.size() == 2 ? reply->elements[1].text : "";
  };
  found.eviction = get("maxmemory-policy");
  found.appendonly = get("appendonly");
  found.appendfsync = get("appendfsync");
  if (!found.eviction.empty()) return found;
  const auto info = ask(parts, server, {"INFO"});
  std::string eviction;
  if (info) {
    found.eviction = info_value(info->text, "maxmemory_policy");
    const std::string aof = info_value(info->text, "aof_enabled");
    if (!aof.empty()) found.appendonly = aof == "1" ? "yes" : "no";
  }
  parts.warnings.push_back(server->name() + ": CONFIG GET is forbidden: " +
                           (found.eviction.empty()
                                ? "maxmemory-policy could not be checked, it must be noeviction"
                                : "appendfsync could not be checked, taken for everysec"));
  return found;
}

Durability durability_of(const Settings& settings) {
  if (settings.appendonly != "yes") return Durability::none;
  return settings.appendfsync == "always" ? Durability::power : Durability::process;
}

result<void> check_settings(Parts& parts, const ConnectionPtr& server) {
  const Settings settings = read_settings(parts, server);
  if (!settings.eviction.empty() && settings.eviction != "noeviction") {
    const std::string trouble = server->name() + ": maxmemory-policy is " + settings.eviction +
                                ": a full server would throw live claims away; set noeviction";
    if (!parts.options.evicting_is_warning) {
      return idem::fail(errc::cannot_open, trouble + " (or open with eviction=warn)");
    }
    parts.warnings.push_back(trouble);
  }
  const Durability durability = durability_of(settings);
  if (durability < parts.capabilities.durability) parts.capabilities.durability = durability;
  if (parts.options.min_durability && durability < *parts.options.min_durability) {
    return idem::fail(errc::cannot_open,
                      server->name() + " keeps less than min_durability asks for: appendonly is " +
                          settings.appendonly + ", appendfsync is " + settings.appendfsync);
  }
  return {};
}

Error missing_right(const ConnectionPtr& server, std::string_view what, const Error& error) {
  return idem::fail(errc::denied, server->name() + ": a right is missing for " + std::string(what) +
                                      ": " + error.message);
}

// The commands a script runs, one by one: the server does not always name the one it forbids there.
std::string forbidden_inside(Parts& parts, const ConnectionPtr& server, const std::string& key) {
  std::string names;
  const std::vector<std::vector<std::string>> commands{
      {"TIME"}, {"GET", key}, {"SET", key, "", "PX", "1"}, {"DEL", key}};
  for (const auto& command : commands) {
    const auto reply = ask(parts, server, command);
    if (reply || reply.error().code != errc::denied) continue;
    names += (names.empty() ? "" : ", ") + command.front();
  }
  return names.empty() ? "the scripts" : names;
}

// Makes, reads, replaces and removes a record of our own, as a claim and its end do.
result<void> check_rights(Parts& parts, const ConnectionPtr& server) {
  const std::string name = std::string(kProbe) + Owner::random().hex();
  Draft draft;
  draft.keep = std::chrono::seconds(1);
  const std::string body = encode_body(name, draft);
  const auto run = [&](const Script& script, std::vector<std::string> more) -> result<Reply> {
    Command command = parts.command(name, script);
    command.on = server;
    command.writes = false;  // a probe waits for no replica
    for (std::string& argument : more) command.arguments.push_back(std::move(argument));
    parts.courier.run({&command, 1});
    if (command.failed()) {
      if (command.error.code != errc::denied) return at(server, command.error);
      return missing_right(server,
                           forbidden_inside(parts, server, command.key) + " on keys under '" +
                               parts.options.prefix + "'",
                           command.error);
    }
    return std::move(command.reply);
  };
  const auto inserted = run(scripts().insert, {"10000", "1000000", body});
  if (!inserted) return inserted.error();
  if (inserted->text.size() != 1 + 8 + kHeadBytes) {
    return idem::fail(errc::internal, "the probe could not be written");
  }
  const auto head = decode_head(std::string_view(inserted->text).substr(9));
  if (!head) return head.error();
  const auto replaced =
      run(scripts().replace, {"10000", "1000000", body, std::to_string(head->version), "1"});
  if (!replaced) return replaced.error();
  if (const auto loaded = run(scripts().load, {}); !loaded) return loaded.error();
  // DEL and not a floor: the probe leaves nothing behind.
  if (const auto gone = ask(parts, server, {"DEL", parts.redis_key(name)}); !gone) {
    return missing_right(server, "DEL", gone.error());
  }
  if (const std::uint32_t wanted = parts.options.wait_replicas; wanted != 0) {
    const auto copies = ask(parts, server, {"WAIT", std::to_string(wanted), "100"});
    if (!copies) return missing_right(server, "WAIT", copies.error());
    if (copies->integer < wanted) {
      parts.warnings.push_back(server->name() + ": " + std::to_string(copies->integer) +
                               " replicas confirm, wait_replicas wants " + std::to_string(wanted));
    }
  }
  const std::string key = parts.redis_key(name);
  for (const std::vector<std::string>& walking :
       {std::vector<std::string>{"SCAN", "0", "COUNT", "1"},
        {"STRLEN", key},
        {"GETRANGE", key, "0", "0"}}) {
    const auto allowed = ask(parts, server, walking);
    if (allowed || allowed.error().code != errc::denied) continue;
    parts.warnings.push_back(server->name() + ": " + walking.front() +
                             " is forbidden: sweep, list and stats will not work");
  }
  return {};
}

}  // namespace

result<void> inspect(Parts& parts) {
  const ConnectionPtr first = parts.router.route("");
  if (auto reached = reach(parts, first); !reached) return reached;
  if (parts.options.cluster) {
    if (auto fits = check_greeting(parts, first); !fits && fits.error().code != errc::read_only) {
      return fits;
    }
    const Time deadline = system_clock().now() + parts.options.connect_timeout.micros();
    if (auto learned = parts.courier.learn_slots(deadline); !learned) return learned;
  }
  parts.capabilities.durability = Durability::power;  // the weakest server counts
  for (const ConnectionPtr& server : parts.router.holders()) {
    if (auto reached = reach(parts, server); !reached) return reached;
    if (auto fits = check_greeting(parts, server); !fits) return fits;
    if (auto fits = check_settings(parts, server); !fits) return fits;
    if (!parts.options.cluster) {
      if (auto fits = check_rights(parts, server); !fits) return fits;
    }
  }
  return {};
}

}  // namespace idem::redis
