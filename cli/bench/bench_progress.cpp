#include "bench/bench_progress.hpp"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "load/units.hpp"

namespace idem::cli {

namespace {

constexpr bench::Nanos kPlainEvery = 10'000'000'000;
constexpr std::size_t kWidthUsual = 100;
constexpr std::size_t kWidthMin = 40;

std::string line_of(const bench::Progress& progress) {
  return fmt::format("round {}/{}  {}, {} client{}  {} left", progress.done + 1, progress.all,
                     progress.subject, progress.clients, progress.clients == 1 ? "" : "s",
                     bench::duration_text(progress.left.count() * 1000));
}

}  // namespace

BenchProgress::BenchProgress()
    : terminal_(isatty(STDERR_FILENO) == 1),
      width_(text_width(STDERR_FILENO)),
      told_(bench::stopwatch()) {}

BenchProgress::~BenchProgress() {
  if (!drawn_) return;
  std::fprintf(stderr, "\r%*s\r", static_cast<int>(width_ - 1), "");
  std::fflush(stderr);
}

void BenchProgress::show(const bench::Progress& progress) { draw(line_of(progress)); }

void BenchProgress::show(std::uint32_t done, std::uint32_t all, const std::string& what,
                         Micros left) {
  draw(fmt::format("step {}/{}  {}  {} left", done + 1, all, what,
                   bench::duration_text(left.count() * 1000)));
}

void BenchProgress::draw(std::string line) {
  if (terminal_) {
    line.resize(width_ - 1, ' ');
    std::fprintf(stderr, "\r%s", line.c_str());
    std::fflush(stderr);
    drawn_ = true;
  } else if (bench::stopwatch() - told_ >= kPlainEvery) {
    told_ = bench::stopwatch();
    std::fprintf(stderr, "%s\n", line.c_str());
  }
}

std::size_t text_width(int file) {
  winsize size{};
  std::size_t width = kWidthUsual;
  if (ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    width = size.ws_col;
  } else if (const char* columns = std::getenv("COLUMNS"); columns != nullptr) {
    const unsigned long told = std::strtoul(columns, nullptr, 10);
    if (told > 0 && told < 1000) width = told;
  }
  return std::max(width, kWidthMin);
}

}  // namespace idem::cli
