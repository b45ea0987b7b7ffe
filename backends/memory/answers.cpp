#include "answers.hpp"

#include <new>

namespace idem::memory {

[[nodiscard]] bool copy(std::string& to, std::string_view from) noexcept {
  try {
    to.assign(from);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void answer_no_memory(Answer& answer) {
  answer.state = Answer::State::failed;
  answer.error = fail(errc::capacity, "the memory store has no memory left: nothing was done");
}

void answer_stands(Answer& answer, const Cell& cell, std::uint64_t version, Time now) {
  if (!copy(answer.held.result, cell.result())) return answer_no_memory(answer);
  describe(answer.held, cell, version);
  answer.now = now;
  answer.state = Answer::State::stands;
}

void answer_written(Answer& answer, const Cell& cell, std::uint64_t version, Time now) {
  describe(answer.held, cell, version);
  answer.now = now;
  answer.state = Answer::State::written;
}

void answer_absent(Answer& answer, Time now) {
  answer.now = now;
  answer.state = Answer::State::absent;
}

void describe(Record& held, const Cell& cell, std::uint64_t version) {
  held.request_hash = cell.request_hash;
  held.owner = cell.owner;
  held.version = version;
  held.fence = cell.fence != 0 ? cell.fence : version;
  held.attempt = cell.attempt;
  held.status = cell.status;
  held.fail_kind = cell.fail_kind;
  held.tombstone = cell.tombstone;
  held.lease_until = cell.status == Status::processing ? cell.until() : Time{};
  held.retry_at = cell.status == Status::failed ? cell.until() : Time{};
  held.create_time = cell.created();
  held.update_time = cell.updated();
  held.expires_at = cell.expires_at();
}

}  // namespace idem::memory
