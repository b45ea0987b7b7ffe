// The stores whose histories are checked.
#pragma once

#include <vector>

#include "idem/conformance/subject.hpp"

namespace idem::linearizability {

[[nodiscard]] std::vector<conformance::Subject> subjects();

}  // namespace idem::linearizability
