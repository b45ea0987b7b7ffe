#include "group.hpp"

#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace idem::cli {

void ask_to_end(pid_t group, int signal) {
  kill(-group, signal);
  kill(-group, SIGCONT);
}

void kill_group(pid_t group) { kill(-group, SIGKILL); }

bool group_is_empty(pid_t group) {
  // EPERM: somebody is there whom we may not even signal.
  return kill(-group, 0) < 0 && errno == ESRCH;
}

bool only_dead_left(pid_t group) {
  bool seen = false;
  std::error_code error;
  for (std::filesystem::directory_iterator each("/proc", error), end; !error && each != end;
       each.increment(error)) {
    const std::string name = each->path().filename();
    if (!std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; }))
      continue;
    std::ifstream file(each->path() / "stat");
    std::string line;
    std::getline(file, line);
    // pid (name) state parent group ...; the name may hold anything.
    const std::size_t name_end = line.rfind(')');
    if (name_end == std::string::npos) continue;
    std::istringstream rest(line.substr(name_end + 1));
    char state = 0;
    pid_t parent = 0;
    pid_t of = 0;
    rest >> state >> parent >> of;
    if (of != group) continue;
    std::string skipped;
    for (int field = 0; field < 14; ++field) rest >> skipped;
    int threads = 0;  // a dead one may stand before others of its process
    rest >> threads;
    seen = true;
    if ((state != 'Z' && state != 'X') || threads > 1) return false;
  }
  return seen;
}

}  // namespace idem::cli
