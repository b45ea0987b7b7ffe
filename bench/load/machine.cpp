#include "load/machine.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sched.h>
#include <sys/statfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <fstream>

#include "load/histogram.hpp"

namespace idem::bench {
namespace {

constexpr int kSyncs = 50;
constexpr Nanos kSyncBudget = 250'000'000;

std::string field_of_cpuinfo(const std::string& name) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(name)) continue;
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "";
}

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

unsigned usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return static_cast<unsigned>(CPU_COUNT(&set));
}

std::string filesystem_of(const std::string& dir) {
  struct statfs info {};
  if (statfs(dir.c_str(), &info) != 0) return "unknown";
  switch (static_cast<unsigned long>(info.f_type)) {
    case 0xef53:
      return "ext4";
    case 0x01021994:
      return "tmpfs";
    case 0x794c7630:
      return "overlay";
    case 0x58465342:
      return "xfs";
    case 0x9123683e:
      return "btrfs";
    case 0x2fc12fc1:
      return "zfs";
    case 0x6969:
      return "nfs";
    default:
      return fmt::format("0x{:x}", static_cast<unsigned long>(info.f_type));
  }
}

Histogram measure_syncs(const std::string& dir) {
  Histogram syncs;
  std::string path = dir + "/idem-bench-XXXXXX";
  const int file = mkstemp(path.data());
  if (file < 0) return syncs;
  unlink(path.c_str());
  const std::array<char, 4096> page{};
  const Nanos start = stopwatch();
  for (int i = 0; i < kSyncs && stopwatch() - start < kSyncBudget; ++i) {
    if (pwrite(file, page.data(), page.size(), 0) < 0) break;
    const Nanos sent = stopwatch();
    if (fdatasync(file) != 0) break;
    syncs.record(stopwatch() - sent);
  }
  close(file);
  return syncs;
}

}  // namespace

std::string build_type() {
#if defined(__SANITIZE_ADDRESS__)
  return "asan";
#elif defined(__SANITIZE_THREAD__)
  return "tsan";
#elif !defined(__OPTIMIZE__)
  return "unoptimised";
#elif defined(_GLIBCXX_ASSERTIONS)
  return "with asserts";
#else
  return "release";
#endif
}

bool is_release_build() { return build_type() == "release"; }

Machine look_at_machine(const std::string& data_dir) {
  Machine machine;
  machine.cpu = field_of_cpuinfo("model name");
  machine.cores = usable_cores();
  utsname kernel{};
  if (uname(&kernel) == 0) machine.kernel = std::string(kernel.sysname) + " " + kernel.release;
  machine.is_virtual = field_of_cpuinfo("flags").find(" hypervisor") != std::string::npos;
  machine.governor = first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  std::array<double, 1> load{};
  if (getloadavg(load.data(), 1) == 1) machine.load_average = load[0];
#if defined(__clang__)
  machine.compiler = "clang " __clang_version__;
#else
  machine.compiler = "g++ " __VERSION__;
#endif
  machine.build = build_type();
  machine.data_dir = data_dir;
  machine.filesystem = filesystem_of(data_dir);
  const Histogram syncs = measure_syncs(data_dir);
  machine.fdatasync_p50 = syncs.quantile(0.5);
  machine.fdatasync_p99 = syncs.quantile(0.99);
  return machine;
}

std::vector<std::string> doubts_about(const Machine& machine) {
  std::vector<std::string> out;
  if (machine.build != "release")
    out.push_back(
        fmt::format("this build is not a release build ({}): build with `cmake --preset release`",
                    machine.build));
  if (machine.filesystem == "tmpfs")
    out.push_back(
        fmt::format("{} is a tmpfs, where writes reach no disk: set TMPDIR to a directory "
                    "on a disk",
                    machine.data_dir));
  if (machine.load_average > machine.cores / 2.0)
    out.push_back(
        fmt::format("the machine was busy before the run (load average {:.1f} on {} "
                    "cores): repeat it when it is idle",
                    machine.load_average, machine.cores));
  return out;
}

}  // namespace idem::bench
