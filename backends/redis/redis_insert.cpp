// insert: the claim of a key that nobody has claimed, which is what a store does most.
//
// It is one plain `SET … NX GET PX`, several times as cheap for the server as a script. The record
// in it must already carry the time, so the time is guessed (ServerTime) and judged by the TIME
// that comes behind the SETs:
//
//   a little early         kept. The lease counts from then and the answer tells its true end, so
//                          its owner knows how long it holds.
//   too early, or ahead    the record is dated anew by the replace script before anyone is told
//                          that it was written. If that finds another record, that one is told.
//   no guess (idle)        the insert script: it reads the time itself.
//
// The versions of a key still grow: whoever removes a record leaves its version behind (a floor),
// which SET … NX GET answers with; then the script, which knows floors, does the insert.
//
// What the SET found was read a moment before the TIME. Whoever concludes from it (a lease is over,
// a record is expired) writes on condition of the version that was read, so a change in between is
// never overlooked.
#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "idem/clock.hpp"
#include "idem/redis_store.hpp"
#include "operations.hpp"
#include "record_codec.hpp"

namespace idem {
namespace {

using redis::Command;
using redis::Head;
using redis::Parts;
using redis::Reply;

constexpr Micros kAheadMax = std::chrono::milliseconds(1);
constexpr Micros kBehindMin = std::chrono::milliseconds(2);
constexpr Micros kBehindMax = std::chrono::seconds(1);

Command script_command(Parts& parts, const Insert& op, std::string_view name) {
  Command command = parts.command(name, redis::scripts().insert);
  command.arguments.push_back(parts.expiry_ms(op.draft.keep));
  command.arguments.push_back(std::to_string(op.draft.keep.count()));
  command.arguments.push_back(redis::encode_body(name, op.draft));
  command.tells_time = true;  // so that the next one can guess it
  return command;
}

// An insert on its way as SET.
struct Sent {
  Insert* op;
  std::size_t name_bytes;  // of its storage name, the end of its key
  Head head;
  std::size_t wire_from = 0;
  redis::Claim claim{};

  [[nodiscard]] std::string_view name_in(std::string_view key) const {
    return key.substr(key.size() - name_bytes);
  }
};

// A guess, so that the commands of a batch nearly always find room: a SET without key and record,
// and a record without a result.
constexpr std::size_t kSetBytes = 80;
constexpr std::size_t kRecordBytes = redis::kResultAt;

// What stands around the key, the record and the expiry: the same each time.
constexpr std::string_view kSetBegin = "*7\r\n$3\r\nSET\r\n";
constexpr std::string_view kSetWords = "\r\n$2\r\nNX\r\n$3\r\nGET\r\n$2\r\nPX\r\n";

void append_set(std::string& wire, const Parts& parts, Sent& sent, std::string_view key) {
  const Draft& draft = sent.op->draft;
  wire += kSetBegin;
  redis::append_argument(wire, key);
  sent.claim.key_at = wire.size() - redis::kLineEnd.size() - key.size() - sent.wire_from;
  sent.claim.key_bytes = key.size();
  redis::begin_argument(wire, redis::record_bytes(draft));
  sent.claim.value_at = wire.size() - sent.wire_from;
  sent.claim.value_bytes = redis::record_bytes(draft);
  redis::append_record(wire, sent.head, sent.name_in(key), draft);
  wire += kSetWords;
  redis::append_argument(wire, parts.expiry_ms(draft.keep));
}

bool well_dated(const Sent& sent, Time now) {
  const Draft& draft = sent.op->draft;
  const Micros length = draft.status == Status::processing ? draft.lease : draft.keep;
  const Micros behind = now - sent.head.now;
  return behind >= -kAheadMax &&
         behind <= std::clamp(Micros(length.count() / 10), kBehindMin, kBehindMax);
}

// Gathers what a SET could not finish.
struct Unfinished {
  std::vector<Insert*> scripts;     // in input order
  std::vector<const Sent*> redate;  // written, with a wrong time
};

void take_set_reply(const Command& command, const Sent& sent, bool virtual_time,
                    Unfinished& unfinished) {
  Answer& answer = sent.op->answer;
  if (command.failed()) return redis::fail_answer(answer, command.error);
  answer.now = virtual_time ? sent.head.now : command.served_at;
  if (command.reply.type == Reply::Type::nil) {
    answer.state = Answer::State::written;
    redis::record_of(sent.op->draft, sent.head, answer.held);
    if (!virtual_time && !well_dated(sent, answer.now)) unfinished.redate.push_back(&sent);
    return;
  }
  if (redis::is_floor(command.reply.text)) {
    unfinished.scripts.push_back(sent.op);
    return;
  }
  auto record = redis::decode_record(sent.name_in(command.belongs_to()), command.reply.text);
  if (!record) return redis::fail_answer(answer, record.error());
  answer.state = Answer::State::stands;
  answer.held = std::move(*record);
}

void by_script(Parts& parts, std::vector<Insert*>& ops) {
  std::vector<Insert> batch;
  batch.reserve(ops.size());
  for (const Insert* op : ops) batch.push_back({op->key, op->draft, {}});
  redis::perform(parts, std::span(batch), [&](const Insert& op, std::string_view name) {
    return script_command(parts, op, name);
  });
  for (std::size_t i = 0; i < ops.size(); ++i) ops[i]->answer = std::move(batch[i].answer);
}

void redate(RedisStore& store, Insert& op) {
  Replace replace{op.key, op.answer.held.version, op.draft, {}};
  store.replace({&replace, 1});
  op.answer = std::move(replace.answer);
  // It was written, only not with the right time: "not applied" would be wrong.
  if (op.answer.state == Answer::State::failed) op.answer.error.code = errc::unknown;
}

// One guess per server for a whole batch: items of one key must go the same way.
class Guesses {
 public:
  explicit Guesses(Parts& parts)
      : parts_(parts),
        virtual_time_(parts.clock.offset() != Micros(0)),
        here_(virtual_time_ ? parts.clock.now() : system_clock().now()) {}

  [[nodiscard]] bool virtual_time() const { return virtual_time_; }
  [[nodiscard]] std::optional<Time> at(std::string_view key) {
    if (virtual_time_) return here_;
    if (!parts_.options.cluster && !guesses_.empty()) return guesses_.front().second;
    const redis::ConnectionPtr server = parts_.router.route(key);
    for (const auto& [known, guess] : guesses_) {
      if (known == server.get()) return guess;
    }
    guesses_.emplace_back(server.get(), server->time().guess(here_));
    return guesses_.back().second;
  }

 private:
  Parts& parts_;
  const bool virtual_time_;
  const Time here_;
  boost::container::small_vector<std::pair<const redis::Connection*, std::optional<Time>>, 1>
      guesses_;
};

}  // namespace

void RedisStore::insert(std::span<Insert> ops) {
  Parts& parts = *impl_;
  if (!redis::in_own_process(parts, ops)) return;
  Guesses guesses(parts);
  boost::container::small_vector<Sent, 1> sent;
  boost::container::small_vector<Command, 1> commands;
  Unfinished unfinished;
  std::string wire;  // of all commands, one behind the other
  std::string key;
  sent.reserve(ops.size());
  commands.reserve(ops.size());
  for (Insert& op : ops) {
    if (!redis::fits(op.draft, op.answer)) continue;
    const std::string name = storage_name(op.key);
    parts.redis_key(name, key);
    const auto now = guesses.at(key);
    if (!now) {
      unfinished.scripts.push_back(&op);
      continue;
    }
    const auto version =
        std::max(static_cast<std::uint64_t>(now->time_since_epoch().count()), op.draft.fence);
    sent.push_back(
        {&op, name.size(), {*now, version, *now, *now + op.draft.keep}, wire.size(), {}});
    if (wire.empty()) wire.reserve(ops.size() * (kSetBytes + key.size() + kRecordBytes));
    append_set(wire, parts, sent.back(), key);
  }
  for (std::size_t i = 0; i < sent.size(); ++i) {
    const std::size_t end = i + 1 < sent.size() ? sent[i + 1].wire_from : wire.size();
    Command& command = commands.emplace_back();
    command.wire = std::string_view(wire).substr(sent[i].wire_from, end - sent[i].wire_from);
    command.claim = sent[i].claim;
    command.writes = command.tells_time = true;
  }
  if (!commands.empty()) parts.courier.run({commands.data(), commands.size()});
  for (std::size_t i = 0; i < sent.size(); ++i) {
    take_set_reply(commands[i], sent[i], guesses.virtual_time(), unfinished);
  }
  for (const Sent* one : unfinished.redate) redate(*this, *one->op);
  // A record that was taken away while it was dated anew: the key is free.
  for (const Sent* one : unfinished.redate) {
    if (one->op->answer.state == Answer::State::absent) unfinished.scripts.push_back(one->op);
  }
  if (!unfinished.scripts.empty()) by_script(parts, unfinished.scripts);
}

}  // namespace idem
