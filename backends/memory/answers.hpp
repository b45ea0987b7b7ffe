// What a shard tells about a cell.
#pragma once

#include <string>
#include <string_view>

#include "cell.hpp"
#include "idem/store.hpp"

namespace idem::memory {

// Fills in everything but the result.
void describe(Record& held, const Cell& cell, std::uint64_t version);

// False: no memory.
[[nodiscard]] bool copy(std::string& to, std::string_view from) noexcept;

void answer_no_memory(Answer& answer);
void answer_stands(Answer& answer, const Cell& cell, std::uint64_t version, Time now);
void answer_written(Answer& answer, const Cell& cell, std::uint64_t version, Time now);
void answer_absent(Answer& answer, Time now);

}  // namespace idem::memory
