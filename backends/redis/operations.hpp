// From operations of the contract to commands, and from replies to answers: what the verbs share.
#pragma once

#include <boost/container/small_vector.hpp>
#include <span>
#include <string_view>

#include "courier.hpp"
#include "idem/store.hpp"
#include "store_impl.hpp"

namespace idem::redis {

inline constexpr std::uint64_t kResultBytesMax = std::uint64_t{64} << 20;

void fail_answer(Answer& answer, Error error);

// False: the answer says that the result is too large.
[[nodiscard]] bool fits(const Draft& draft, Answer& answer);

// What a script said, as an answer. `draft`: what was written, null for remove and load.
void take_script_reply(const Command& command, std::string_view storage_name, const Draft* draft,
                       Answer& answer);

// False: this is a child of the process that opened the store, and every answer says so.
template <class Op>
[[nodiscard]] bool in_own_process(const Parts& parts, std::span<Op> ops) {
  if (parts.in_own_process()) return true;
  const char* const why = "the store was opened before the fork: open it again here";
  for (Op& op : ops) fail_answer(op.answer, idem::fail(errc::wrong_process, why));
  return false;
}

// Builds a script's command per operation, runs them in one trip, hands out the answers.
template <class Op, class Build>
void perform(Parts& parts, std::span<Op> ops, Build build) {
  if (!in_own_process(parts, ops)) return;
  boost::container::small_vector<Command, 1> commands;
  boost::container::small_vector<std::string, 1> names;
  boost::container::small_vector<Op*, 1> asked;
  commands.reserve(ops.size());
  for (Op& op : ops) {
    if constexpr (requires { op.draft; }) {
      if (!fits(op.draft, op.answer)) continue;
    }
    names.push_back(storage_name(op.key));
    commands.push_back(build(op, names.back()));
    asked.push_back(&op);
  }
  if (commands.empty()) return;
  parts.courier.run({commands.data(), commands.size()});
  for (std::size_t i = 0; i < asked.size(); ++i) {
    const Draft* draft = nullptr;
    if constexpr (requires { asked[i]->draft; }) draft = &asked[i]->draft;
    take_script_reply(commands[i], names[i], draft, asked[i]->answer);
  }
}

}  // namespace idem::redis
