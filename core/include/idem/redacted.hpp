// Texts that are shown to people and kept in logs.
#pragma once

#include <string>
#include <string_view>

namespace idem {

// What was meant as a URL, without what is or may be a password; if it cannot be parsed, only its
// scheme.
[[nodiscard]] std::string redacted_url(std::string_view text);

// What may be meant as one: a text that does not look like a URL is returned as it is.
[[nodiscard]] std::string redacted(std::string_view text);

}  // namespace idem
