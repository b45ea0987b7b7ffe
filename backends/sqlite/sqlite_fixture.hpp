// Private stores for tests and measurements.
#pragma once

#include <string_view>

#include "idem/backend.hpp"

namespace idem::sqlite {

// "file" (the default): a file in a directory of its own below the directory for temporary files,
// removed with the fixture's owner. "memory": a private database.
[[nodiscard]] result<Fixture> make_fixture(std::string_view variant, const OpenOptions& options);

}  // namespace idem::sqlite
