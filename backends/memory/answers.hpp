// What a shard tells about a cell. Inline: half of a replay's instructions are here.
#pragma once

#include <bit>
#include <cstddef>
#include <cstring>
#include <new>
#include <string>
#include <string_view>

#include "cell.hpp"
#include "idem/store.hpp"
#include "moment.hpp"

namespace idem::memory {

// Fills in everything but the result. Reads all before it writes any: the compiler cannot know that
// one is not in the other.
[[gnu::always_inline]] inline void describe(Record& held, const Cell& cell,
                                            const CellFields& fields, std::uint64_t version,
                                            Time written) {
  const std::uint64_t fence = fields.fence(version);
  const std::uint64_t told = std::uint64_t{fields.told()} << 32 | fields.attempt();
  const Status status = fields.status();
  const bool timed = fields.has_until();
  const Time until = timed ? later(written, fields.until_after()) : Time{};
  const Time created = fields.created(written, fence);
  const Time expires = later(written, cell.keep());
  held.request_hash = cell.request_hash;
  held.owner = cell.owner;
  held.version = version;
  held.fence = fence;
  std::memcpy(reinterpret_cast<char*>(&held) + offsetof(Record, attempt), &told, sizeof(told));
  held.lease_until = timed && status == Status::processing ? until : Time{};
  held.retry_at = timed && status == Status::failed ? until : Time{};
  held.create_time = created;
  held.update_time = written;
  held.expires_at = expires;
}

// CellFields::told() and the attempt before it are as in a Record.
static_assert(offsetof(Record, status) == offsetof(Record, attempt) + 4 &&
              offsetof(Record, fail_kind) == offsetof(Record, attempt) + 5 &&
              offsetof(Record, tombstone) == offsetof(Record, attempt) + 6 &&
              offsetof(Record, lease_until) == offsetof(Record, attempt) + 8);
static_assert(std::endian::native == std::endian::little);

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
[[nodiscard, gnu::noinline]] inline bool assign(std::string& to, std::string_view from) noexcept {
  try {
    to.assign(from);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

// The same; a buffer that is used again for results of one size costs no call.
[[nodiscard, gnu::always_inline]] inline bool copy(std::string& to,
                                                   std::string_view from) noexcept {
  // Of the two sizes the one that is known before the cell has come.
  const std::size_t count = to.size();
  if (from.size() != count) [[unlikely]]
    return assign(to, from);
  if (count == 0) return true;
  copy_bytes(to.data(), from.data(), count);
  return true;
}

[[gnu::noinline, gnu::cold]] inline void answer_no_memory(Answer& answer) noexcept {
  answer.state = Answer::State::failed;
  answer.error = fail(errc::capacity, "the memory store has no memory left: nothing was done");
}

// Of a cell whose version is settled. `fields`: the cell's.
[[gnu::always_inline]] inline void answer_stands(Answer& answer, const Cell& cell,
                                                 const CellFields& fields, std::uint64_t version,
                                                 Time written, Moment moment) noexcept {
  const Time now = moment.not_before(written);
  if (!copy(answer.held.result, fields.result())) [[unlikely]]
    return answer_no_memory(answer);
  describe(answer.held, cell, fields, version, written);
  answer.now = now;
  answer.state = Answer::State::stands;
}

[[gnu::noinline]] inline void answer_stands_any(Answer& answer, const Cell& cell,
                                                Moment moment) noexcept {
  answer_stands(answer, cell, cell.fields(), cell.version(), cell.updated(), moment);
}

// The same for any settled cell; those that most records have know all about themselves.
// `version_word`: as settled.
[[gnu::always_inline]] inline void answer_stands(Answer& answer, const Cell& cell,
                                                 std::uint64_t version_word,
                                                 Moment moment) noexcept {
  const auto as = [&](std::uint32_t usual) __attribute__((always_inline)) {
    const CellFields fields(cell, usual | (cell.bits & CellBits::kKeyBytes));
    answer_stands(answer, cell, fields, version_word, fields.written(version_word), moment);
  };
  const std::uint32_t kind = cell.bits & ~(CellBits::kClass | CellBits::kKeyBytes);
  if (kind == CellBits::kUsualSuccess) return as(CellBits::kUsualSuccess);
  if (kind == CellBits::kUsualClaim && version_word < Cell::kWrittenLate)
    return as(CellBits::kUsualClaim);
  answer_stands_any(answer, cell, moment);
}

// If the cell is a bare key's, a usual one and settled, answers as answer_stands does; else it does
// nothing: false. One comparison tells all about a usual cell.
[[nodiscard, gnu::always_inline]] inline bool answer_usual(Answer& answer, const Cell& cell,
                                                           std::string_view key,
                                                           Moment moment) noexcept {
  const std::size_t count = key.size();
  const auto as = [&](std::uint32_t usual) __attribute__((always_inline)) {
    const CellFields fields(cell, usual | (count & CellBits::kKeyBytes));
    if (!same_bytes(fields.text(), key.data(), count)) [[unlikely]]
      return false;
    const std::uint64_t version = cell.version_word.load();
    if (usual == CellBits::kUsualClaim && version >= Cell::kWrittenLate) [[unlikely]]
      return false;
    answer_stands(answer, cell, fields, version, fields.written(version), moment);
    return true;
  };
  const std::size_t bits = cell.bits & ~CellBits::kClass;
  if (bits == (CellBits::kUsualSuccess | count)) [[likely]]
    return as(CellBits::kUsualSuccess);
  if (bits == (CellBits::kUsualClaim | count)) return as(CellBits::kUsualClaim);
  return false;
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
