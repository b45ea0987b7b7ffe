// What a shard tells about a cell. Inline: half of a replay's instructions are here.
#pragma once

#include <cstring>
#include <new>
#include <string>
#include <string_view>

#include "cell.hpp"
#include "idem/store.hpp"

namespace idem::memory {

// Fills in everything but the result. Reads all before it writes any: the compiler cannot know that
// one is not in the other.
inline void describe(Record& held, const Cell& cell, std::uint64_t version) {
  const Time written = cell.updated();
  const Status status = cell.status();
  const FailKind fail_kind = cell.fail_kind();
  const bool tombstone = cell.tombstone();
  const std::uint64_t fence = cell.fence(version);
  const std::uint32_t attempt = cell.attempt();
  const Time until = later(written, cell.until_after());
  const Time created = cell.created(written, fence);
  const Time expires = later(written, cell.keep());
  held.request_hash = cell.request_hash;
  held.owner = cell.owner;
  held.version = version;
  held.fence = fence;
  held.attempt = attempt;
  held.status = status;
  held.fail_kind = fail_kind;
  held.tombstone = tombstone;
  held.lease_until = status == Status::processing ? until : Time{};
  held.retry_at = status == Status::failed ? until : Time{};
  held.create_time = created;
  held.update_time = written;
  held.expires_at = expires;
}

// The same of a record that was made of `draft` just now, in one step with its settling: nothing is
// read back from the cell.
inline void describe_written(Record& held, const Draft& draft, std::uint64_t version, Time written,
                             Time created) {
  held.request_hash = draft.request_hash;
  held.owner = draft.owner;
  held.version = version;
  held.fence = draft.fence != 0 ? draft.fence : version;
  held.attempt = draft.attempt;
  held.status = draft.status;
  held.fail_kind = draft.fail_kind;
  held.tombstone = draft.tombstone;
  held.lease_until = draft.status == Status::processing ? later(written, draft.lease) : Time{};
  held.retry_at = draft.status == Status::failed ? later(written, draft.retry_after) : Time{};
  held.create_time = created;
  held.update_time = written;
  held.expires_at = later(written, draft.keep);
}

// False: no memory.
[[nodiscard]] inline bool assign(std::string& to, std::string_view from) noexcept {
  try {
    to.assign(from);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

// The same; a buffer that is used again for results of one size costs no call.
[[nodiscard]] inline bool copy(std::string& to, std::string_view from) noexcept {
  const std::size_t count = from.size();
  if (to.size() != count || count < 16) return (count == 0 && to.empty()) || assign(to, from);
  char* const into = to.data();
  for (std::size_t at = 0; at + 16 < count; at += 16) std::memcpy(into + at, from.data() + at, 16);
  std::memcpy(into + count - 16, from.data() + count - 16, 16);
  return true;
}

inline void answer_no_memory(Answer& answer) {
  answer.state = Answer::State::failed;
  answer.error = fail(errc::capacity, "the memory store has no memory left: nothing was done");
}

inline void answer_stands(Answer& answer, const Cell& cell, std::uint64_t version, Time now) {
  if (!copy(answer.held.result, cell.result())) return answer_no_memory(answer);
  describe(answer.held, cell, version);
  answer.now = now;
  answer.state = Answer::State::stands;
}

inline void answer_written(Answer& answer, const Draft& draft, std::uint64_t version, Time written,
                           Time created) {
  describe_written(answer.held, draft, version, written, created);
  answer.now = written;
  answer.state = Answer::State::written;
}

inline void answer_absent(Answer& answer, Time now) {
  answer.now = now;
  answer.state = Answer::State::absent;
}

}  // namespace idem::memory
