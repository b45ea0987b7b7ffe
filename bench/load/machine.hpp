// What was measured on: the header of every report, and what makes a measurement doubtful.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "load/stopwatch.hpp"

namespace idem::bench {

struct Machine {
  std::string cpu;
  unsigned cores = 0;  // this process may use
  std::string kernel;
  bool is_virtual = false;
  std::string governor;  // "" if the kernel does not tell
  double load_average = 0;
  std::string compiler;
  std::string build;       // "release", "unoptimised", "asan" ...
  std::string data_dir;    // where private stores put their files
  std::string filesystem;  // of data_dir: "ext4", "tmpfs" ...
  std::optional<Nanos> fdatasync_p50;
  std::optional<Nanos> fdatasync_p99;
};

// Takes about 50 fdatasync calls of a 4 KB file in `data_dir`: at most a quarter of a second.
[[nodiscard]] Machine look_at_machine(const std::string& data_dir);

// The build type of this library and program, judged by what the compiler was told.
[[nodiscard]] std::string build_type();
[[nodiscard]] bool is_release_build();

// One sentence each, with a cure: debug build, tmpfs, busy machine. Pure.
[[nodiscard]] std::vector<std::string> doubts_about(const Machine& machine);

}  // namespace idem::bench
