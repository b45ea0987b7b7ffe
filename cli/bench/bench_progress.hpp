// Progress of a measurement on standard error.
#pragma once

#include <cstddef>
#include <string>

#include "load/session.hpp"

namespace idem::cli {

// On a terminal one line that is rewritten; elsewhere a plain line every ten seconds.
class BenchProgress {
 public:
  BenchProgress();
  ~BenchProgress();  // takes the line away
  BenchProgress(const BenchProgress&) = delete;
  BenchProgress& operator=(const BenchProgress&) = delete;

  void show(const bench::Progress& progress);
  // "step 3/80", and the rest of the line.
  void show(std::uint32_t done, std::uint32_t all, const std::string& what, Micros left);

 private:
  void draw(std::string line);
  bool terminal_;
  std::size_t width_;
  bool drawn_ = false;
  bench::Nanos told_;
};

// Columns of the terminal behind `file`; COLUMNS or 100 where there is none.
[[nodiscard]] std::size_t text_width(int file);

}  // namespace idem::cli
