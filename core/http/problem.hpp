// The answers that the guard gives by itself: one table of status, code and words.
#pragma once

#include "idem/http.hpp"

namespace idem::http {

// `detail` empty: the table's. Constant text only.
[[nodiscard]] Answer answer_of(Reason reason, std::string_view detail = {});

// Retry-After: whole seconds, rounded up, at least 1.
[[nodiscard]] std::string retry_after_seconds(Micros left);

}  // namespace idem::http
