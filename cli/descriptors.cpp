#include "descriptors.hpp"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string>

namespace idem::cli {
namespace {

std::vector<int>& remembered() {
  static std::vector<int> given;
  return given;
}

void close_range(unsigned first, unsigned last, unsigned how) {
  if (first <= last) ::syscall(SYS_close_range, first, last, how);
}

void mark(unsigned first, unsigned last) { close_range(first, last, CLOSE_RANGE_CLOEXEC); }

}  // namespace

void settle_descriptors() {
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    // The lowest free number is `standard`. Read-only: to write into it is an error.
    if (::fcntl(standard, F_GETFD) < 0) static_cast<void>(::open("/dev/null", O_RDONLY));
  }
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", none)) {
    const std::string name = entry.path().filename().string();
    int number = -1;
    std::from_chars(name.data(), name.data() + name.size(), number);
    if (number > STDERR_FILENO) remembered().push_back(number);
  }
  // The one that the listing itself had open is gone.
  std::erase_if(remembered(), [](int number) { return ::fcntl(number, F_GETFD) < 0; });
  std::sort(remembered().begin(), remembered().end());
}

const std::vector<int>& given_descriptors() { return remembered(); }

void keep_only(const std::vector<int>& given) {
  unsigned next = STDERR_FILENO + 1;
  for (const int number : given) {
    mark(next, static_cast<unsigned>(number) - 1);
    next = static_cast<unsigned>(number) + 1;
  }
  mark(next, ~0U);
}

void close_all_but(int kept) {
  const auto number = static_cast<unsigned>(kept);
  if (number > 0) close_range(0, number - 1, 0);
  close_range(number + 1, ~0U, 0);
}

}  // namespace idem::cli
