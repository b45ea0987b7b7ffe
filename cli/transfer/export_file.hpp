// The file of `idem store export`: JSON Lines, "idem.export/1".
//
//   {"format":"idem.export/1"}
//   {"key":"pay-42","status":"success",...}     one line per record
//   {"end":true,"records":1,"sha256":"..."}     of all bytes before this line
//
// Times are instants in microseconds since 1970 UTC: a lease and a result go on ageing while they
// lie in a file. Bytes that are not UTF-8 are hexadecimal under result_hex. A file that was cut or
// changed is refused, and a line longer than the largest record makes.
#pragma once

#include <functional>
#include <istream>
#include <string>

#include "failure.hpp"
#include "idem/fingerprint.hpp"
#include "idem/store.hpp"

namespace idem::cli {

// What every export begins with.
inline constexpr std::string_view kExportHead = R"({"format":"idem.export/1"})";

// One line, without its end.
[[nodiscard]] std::string to_export_line(const Listed& item);
// invalid_argument: what is wrong with it.
[[nodiscard]] result<Listed> from_export_line(std::string_view line);

// Makes the lines of a file, one after the other, for `write`.
class ExportWriter {
 public:
  explicit ExportWriter(std::function<void(std::string_view)> write);
  void add(const Listed& item);
  void end();
  [[nodiscard]] std::uint64_t records() const { return records_; }

 private:
  void line(std::string text);

  std::function<void(std::string_view)> write_;
  FingerprintStream digest_;
  std::uint64_t records_ = 0;
};

// Calls `each` for every record, then checks the end line; how many. A Failure, which names `name`
// and the line, if the file is not whole: by then the records before that line were given out.
std::uint64_t read_export(std::istream& file, const std::string& name,
                          const std::function<void(Listed&&)>& each);

}  // namespace idem::cli
