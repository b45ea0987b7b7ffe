#include "courier.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <numeric>
#include <set>
#include <unordered_set>
#include <utility>

#include "idem/clock.hpp"
#include "reply_error.hpp"

namespace idem::redis {
namespace {

// A lost script, a moved slot and a half-moved key may come one after the other.
constexpr int kRoundsMax = 6;

bool has_repeated_key(std::span<const Command> commands) {
  if (commands.size() < 2) return false;
  std::unordered_set<std::string_view> keys;
  return !std::all_of(commands.begin(), commands.end(), [&](const Command& command) {
    return command.script == nullptr || keys.insert(command.key).second;
  });
}

void append(std::string& out, const Command& command, bool by_text) {
  if (!command.wire.empty()) {
    out += command.wire;
    return;
  }
  boost::container::small_vector<std::string_view, 10> words;
  if (command.script != nullptr) {
    words.push_back(by_text ? "EVAL" : "EVALSHA");
    words.push_back(by_text ? command.script->text : command.script->sha1);
    words.push_back("1");
    words.push_back(command.key);
  }
  for (const std::string& argument : command.arguments) words.push_back(argument);
  append_command(out, {words.data(), words.size()});
}

// How it ended, at the latest now. errc{}: all replies are there.
Error end_of(Connection& connection, Exchange& exchange) {
  if (exchange.done()) return exchange.error();
  if (exchange.withdraw()) {
    Error error = connection.trouble();
    if (error.code != errc::denied) error.code = errc::unavailable;
    error.message = "no connection in time" + (error.message.empty() ? "" : ": " + error.message);
    return error;
  }
  if (exchange.done()) return exchange.error();  // just now
  exchange.abandon();
  connection.submit_review();
  return idem::fail(errc::unknown, connection.name() + " did not answer in time");
}

}  // namespace

// What goes to one server in one round.
struct Courier::Trip {
  struct Stop {
    Command* command;
    std::size_t replies;  // that come before its own: the one of ASKING
  };
  ConnectionPtr connection;
  std::vector<Stop> stops;
  Behind behind{};
  ExchangePtr exchange;
};

struct Courier::Round {
  Time deadline{};
  bool by_text = false;             // every script in full: order must not depend on the cache
  std::vector<Command*> open;       // without an answer yet
  std::set<const Command*> asking;  // these follow an ASK
  std::set<std::pair<const Connection*, const Script*>> forgotten;
  std::vector<Trip> trips;
  std::shared_ptr<Gathering> gathering;
};

void Courier::run(std::span<Command> commands) {
  Round round;
  round.deadline = system_clock().now() + options_.timeout.micros();
  round.by_text = has_repeated_key(commands);
  round.open.reserve(commands.size());
  for (Command& command : commands) round.open.push_back(&command);
  if (options_.cluster && stale_.exchange(false)) {
    const Micros half = options_.timeout.micros() / 2;
    if (!learn_slots(round.deadline - half)) stale_ = true;
  }
  for (int i = 0; !round.open.empty() && i < kRoundsMax; ++i) {
    post(round);
    loop_.wait(*round.gathering, 0, round.deadline);
    round.open.clear();
    round.forgotten.clear();
    bool again = false;
    for (Trip& trip : round.trips) again = take(round, trip) || again;
    if (!again) return;
  }
  for (Command* command : round.open) {
    command->error =
        idem::fail(errc::unavailable, "sent from one redis server to another for ever");
  }
}

// Sorts the open commands by server and sends them off.
void Courier::post(Round& round) {
  round.trips.clear();
  for (Command* command : round.open) {
    const ConnectionPtr connection =
        command->on ? command->on : router_.route(command->belongs_to());
    auto trip = std::find_if(round.trips.begin(), round.trips.end(), [&](const Trip& candidate) {
      return candidate.connection == connection;
    });
    if (trip == round.trips.end()) {
      trip = round.trips.insert(round.trips.end(), Trip{connection, {}, {}, nullptr});
      if (!options_.cluster) trip->stops.reserve(round.open.size());
    }
    trip->stops.push_back({command, round.asking.contains(command) ? 1U : 0U});
  }
  round.gathering = std::make_shared<Gathering>(round.trips.size());
  for (Trip& trip : round.trips) {
    std::string payload;
    payload.reserve(std::accumulate(
        trip.stops.begin(), trip.stops.end(), std::size_t{0},
        [](std::size_t sum, const Trip::Stop& stop) { return sum + stop.command->wire.size(); }));
    std::size_t replies = 0;
    for (const Trip::Stop& stop : trip.stops) {
      if (stop.replies != 0) append_command(payload, {"ASKING"});
      const Command& command = *stop.command;
      // The text of a forgotten script teaches it; those behind it in the pipeline name it again.
      const bool teach = command.script != nullptr &&
                         round.forgotten.erase({trip.connection.get(), command.script}) != 0;
      append(payload, command, round.by_text || teach);
      replies += stop.replies + 1;
      if (command.writes) trip.behind.copies = options_.wait_replicas;
      trip.behind.time = trip.behind.time || command.tells_time;
    }
    if (trip.behind.copies != 0) {
      trip.behind.copies_limit = (round.deadline - system_clock().now()) / 2;
    }
    const bool alone = trip.stops.size() == 1 && replies == 1;
    trip.exchange =
        std::make_shared<Exchange>(round.gathering, std::move(payload), replies, trip.behind,
                                   alone ? trip.stops[0].command->claim : Claim{});
    trip.connection->submit(trip.exchange);
  }
}

// True if something is to be sent again.
bool Courier::take(Round& round, Trip& trip) {
  const Error error = end_of(*trip.connection, *trip.exchange);
  if (error.code != errc{}) {
    for (const Trip::Stop& stop : trip.stops) stop.command->error = error;
    stale_ = true;
    return false;
  }
  std::vector<Reply>& replies = trip.exchange->replies();
  const bool short_of_copies =
      trip.exchange->copies() < static_cast<std::int64_t>(trip.behind.copies);
  bool again = false;
  std::size_t at = 0;
  const Time served_at = trip.exchange->served_at();
  for (const Trip::Stop& stop : trip.stops) {
    at += stop.replies;
    Command& command = *stop.command;
    command.reply = std::move(replies[at++]);
    if (command.reply.is_error() && retry(command, trip, round)) {
      round.open.push_back(&command);
      again = true;
    } else if (short_of_copies && !command.failed()) {
      command.error = idem::fail(errc::unknown, "too few replicas confirmed the write in time");
    } else if (command.tells_time && served_at == Time{} && !command.failed()) {
      command.error = idem::fail(errc::unknown, "the server did not tell its time");
    }
    command.served_at = served_at;
  }
  return again;
}

bool Courier::retry(Command& command, Trip& trip, Round& round) {
  ReplyError what = classify(command.reply.text);
  const bool cluster = options_.cluster;
  switch (what.kind) {
    case ReplyErrorKind::no_script:
      round.forgotten.insert({trip.connection.get(), command.script});
      return true;
    case ReplyErrorKind::moved:
      if (!cluster) break;
      if (const auto to = router_.at(what.endpoint, trip.connection->name())) {
        router_.move_slot(slot_of(command.belongs_to()), to);
        round.asking.erase(&command);
        command.on = nullptr;
        stale_ = true;
        return true;
      }
      break;
    case ReplyErrorKind::ask:
      if (!cluster) break;
      if (const auto to = router_.at(what.endpoint, trip.connection->name())) {
        command.on = to;
        round.asking.insert(&command);
        return true;
      }
      break;
    case ReplyErrorKind::demoted:
      trip.connection->submit_close();
      stale_ = true;
      break;
    case ReplyErrorKind::not_now:
    case ReplyErrorKind::answer:
      break;
  }
  command.error = std::move(what.error);
  return false;
}

// Asks every node at once and takes the first map that comes.
result<void> Courier::learn_slots(Time deadline) {
  const std::vector<ConnectionPtr> nodes = router_.all();
  const auto gathering = std::make_shared<Gathering>(nodes.size());
  std::vector<std::pair<ConnectionPtr, ExchangePtr>> asked;
  for (const ConnectionPtr& node : nodes) {
    std::string payload;
    append_command(payload, {"CLUSTER", "SLOTS"});
    asked.emplace_back(node, std::make_shared<Exchange>(gathering, std::move(payload), 1));
  }
  for (const auto& [node, exchange] : asked) node->submit(exchange);

  Error last = idem::fail(errc::unavailable, "no node of the cluster answers");
  bool learned = false;
  const auto take_one = [&](auto& one) {
    if (learned || !one.second->done()) return;
    const auto exchange = std::exchange(one.second, nullptr);
    if (exchange->error().code != errc{}) {
      last = exchange->error();
    } else if (const Reply& reply = exchange->replies().front(); reply.is_error()) {
      last = classify(reply.text).error;
    } else {
      learned = router_.learn(reply, one.first->name());
    }
  };
  for (std::size_t left = asked.size(); left > 0 && !learned;) {
    loop_.wait(*gathering, left - 1, deadline);
    const std::size_t pending = gathering->pending();
    if (pending == left) break;  // the deadline
    left = pending;
    for (auto& one : asked) {
      if (one.second) take_one(one);
    }
  }
  for (const auto& [node, exchange] : asked) {
    if (exchange) (void)exchange->withdraw();
  }
  if (!learned) return last;
  return {};
}

}  // namespace idem::redis
