// Runs sqlite_probe as another process.
#pragma once

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace idem {

class Probe {
 public:
  explicit Probe(const std::vector<std::string>& words) {
    int ends[2];
    if (pipe(ends) != 0) std::abort();
    std::vector<char*> arguments = {const_cast<char*>(IDEM_SQLITE_PROBE)};
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    process_ = fork();
    if (process_ == 0) {
      dup2(ends[1], STDOUT_FILENO);
      close(ends[0]);
      close(ends[1]);
      execv(arguments[0], arguments.data());
      _exit(127);
    }
    close(ends[1]);
    output_ = fdopen(ends[0], "r");
  }
  ~Probe() {
    kill();
    fclose(output_);
  }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  // The next line without its end; "" when there are no more. A line cut short by a kill is none.
  std::string line() {
    std::string text;
    for (int c = fgetc(output_); c != EOF; c = fgetc(output_)) {
      if (c == '\n') return text;
      text += static_cast<char>(c);
    }
    return "";
  }

  void kill() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
    process_ = 0;
  }

 private:
  pid_t process_ = 0;
  FILE* output_ = nullptr;
};

}  // namespace idem
