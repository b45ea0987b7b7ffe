// What the pages of `run` and `choose` share: rows of a session.
#pragma once

#include <string>

#include "report/page.hpp"

namespace idem::bench {

[[nodiscard]] PageTable rows_table(const Json& rows, bool open_loop);
// "0", or "unavailable 12, unknown 3".
[[nodiscard]] std::string errors_figure(const Json& row);
void add_row_notes(Page& page, const Json& rows);
// `prefix` of the charts' ids.
void add_row_charts(PageSection& section, const std::string& prefix, const Json& rows,
                    bool open_loop);
[[nodiscard]] PageSection checks_section(const Json& rows);

}  // namespace idem::bench
