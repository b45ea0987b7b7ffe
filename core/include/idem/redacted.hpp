// Texts that are shown to people and kept in logs.
#pragma once

#include <string>
#include <string_view>

namespace idem {

// `text` as it may be shown: if it is a URL, without what is or may be a password; if it looks like
// one that cannot be parsed, only its scheme. Anything else is returned as it is.
[[nodiscard]] std::string redacted(std::string_view text);

}  // namespace idem
