#include "worker.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>

#include "failure.hpp"
#include "idem/open.hpp"

extern char** environ;  // NOLINT: POSIX's name

namespace idem::cli {

ExitCode be_worker(const std::string& store_url) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  IdempotencyService service(must(open(store_url)));
  CallOptions options;
  options.policy.lease = kDemoLease;
  const auto outcome = must(service.claim({kDemoKey, Fingerprint::of_bytes("parcel 42")}, options));
  const auto* claimed = std::get_if<Claimed>(&outcome);
  if (claimed == nullptr) return exit_code(outcome);
  const Token token = claimed->lease.token();
  fmt::print("{} {}\n", token.owner.hex(), token.fence);
  std::fflush(stdout);
  while (true) pause();
}

Worker::Worker(const std::string& store_url) {
  int ends[2] = {-1, -1};
  if (pipe2(ends, O_CLOEXEC) != 0) throw Failure(fail(errc::internal, "no pipe"));
  std::string program = "/proc/self/exe";
  std::string words[] = {"idem", "demo", "--worker", store_url};
  char* argv[] = {words[0].data(), words[1].data(), words[2].data(), words[3].data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  const int error = posix_spawn(&pid_, program.c_str(), &actions, nullptr, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  char owner[33] = {};
  std::FILE* output = fdopen(ends[0], "r");
  const bool told = error == 0 && output != nullptr &&
                    std::fscanf(output, "%32s %" SCNu64, owner, &token_.fence) == 2;
  if (output != nullptr) std::fclose(output);
  if (!told) throw Failure(fail(errc::internal, "the demo's worker did not claim"));
  token_.owner = must(Owner::from_hex(owner));
}

Worker::~Worker() {
  if (pid_ > 0) kill();
}

bool Worker::kill() {
  ::kill(pid_, SIGKILL);
  int status = 0;
  const bool waited = waitpid(pid_, &status, 0) == pid_;
  pid_ = -1;
  return waited && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

}  // namespace idem::cli
