#include "operations.hpp"

#include <utility>

#include "record_codec.hpp"

namespace idem::redis {
namespace {

Error not_ours(const Reply& reply) {
  return idem::fail(errc::internal,
                    "a script answered something else: " + reply.text.substr(0, 80));
}

}  // namespace

void fail_answer(Answer& answer, Error error) {
  answer.state = Answer::State::failed;
  answer.error = std::move(error);
}

bool fits(const Draft& draft, Answer& answer) {
  if (draft.result.size() <= kResultBytesMax) return true;
  fail_answer(answer,
              idem::fail(errc::too_large, "a result of " + std::to_string(draft.result.size()) +
                                              " bytes; at most 64 MiB"));
  return false;
}

void take_script_reply(const Command& command, std::string_view storage_name, const Draft* draft,
                       Answer& answer) {
  if (command.failed()) return fail_answer(answer, command.error);
  std::string_view text = command.reply.text;
  if (text.size() < 9) return fail_answer(answer, not_ours(command.reply));
  const char letter = text.front();
  std::int64_t now = 0;
  for (std::size_t i = 8; i > 0; --i) now = now << 8 | static_cast<unsigned char>(text[i]);
  text.remove_prefix(9);
  answer.now = Time(Micros(now));
  switch (letter) {
    case 'W':
      answer.state = Answer::State::written;
      if (draft != nullptr) {
        const auto head = decode_head(text);
        if (!head) return fail_answer(answer, head.error());
        answer.held = record_of(*draft, *head);
      }
      return;
    case 'S': {
      auto record = decode_record(storage_name, text);
      if (!record) return fail_answer(answer, record.error());
      answer.state = Answer::State::stands;
      answer.held = std::move(*record);
      return;
    }
    case 'A':
      answer.state = Answer::State::absent;
      return;
    default:
      return fail_answer(answer, not_ours(command.reply));
  }
}

}  // namespace idem::redis
