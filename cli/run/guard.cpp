#include "guard.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>

#include "alarm.hpp"
#include "descriptors.hpp"
#include "group.hpp"

namespace idem::cli {

namespace {

// What it is told is a safe deadline, or this.
constexpr Time kAsked = Time::min();

constexpr char kReady = 'r';
constexpr char kActed = 'a';

// The guard itself, between fork and its end: async-signal-safe calls only.
class Watch {
 public:
  Watch(int line, pid_t group, const Clock& clock, Micros margin, Time safe_until)
      : line_(line), group_(group), clock_(clock), margin_(margin), safe_until_(safe_until) {}

  [[noreturn]] void run() {
    say(kReady);
    std::array<pollfd, 2> waits{{{line_, POLLIN, 0}, {alarm_.descriptor(), POLLIN, 0}}};
    while (true) {
      act();
      if (poll(waits.data(), waits.size(), -1) < 0) continue;
      if (waits[1].revents != 0) alarm_.hear();
      if (waits[0].revents != 0) listen();
    }
  }

  [[nodiscard]] bool works() const { return alarm_.works(); }

 private:
  void say(char word) const {
    [[maybe_unused]] const ssize_t sent = send(line_, &word, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  void listen() {
    Time word{};
    const ssize_t got = recv(line_, &word, sizeof word, 0);
    if (got < 0 && errno == EINTR) return;
    if (got != static_cast<ssize_t>(sizeof word)) {  // nobody is there any more
      kill_group(group_);
      _exit(0);
    }
    if (word == kAsked) {
      asked_ = true;
    } else {
      safe_until_ = word;
    }
  }

  // The supervisor is the first to act at the deadline, and at three quarters of the margin.
  void act() {
    if (killed_ || safe_until_ == Time::max()) return;
    const Time now = clock_.now();
    const Time ask_at = safe_until_ + margin_ / 4;
    const Time kill_at = safe_until_ + margin_ * 7 / 8;
    if (!asked_ && now >= ask_at) {
      asked_ = true;
      say(kActed);  // before anything can end by it
      ask_to_end(group_, SIGTERM);
    }
    if (now >= kill_at) {
      killed_ = true;
      say(kActed);
      kill_group(group_);
    } else {
      alarm_.set((asked_ ? kill_at : ask_at) - now);
    }
  }

  const int line_;
  const pid_t group_;
  const Clock& clock_;
  const Micros margin_;
  Alarm alarm_;
  Time safe_until_;
  bool asked_ = false;
  bool killed_ = false;  // once: the group's number may be another's, later
};

}  // namespace

bool Guard::start(pid_t group, Time safe_until) {
  int ends[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return false;
  line_ = Descriptor(ends[0]);
  Descriptor its_end(ends[1]);
  group_ = group;
  told_ = safe_until;
  pid_ = fork();
  if (pid_ < 0) return false;
  if (pid_ == 0) {
    setsid();  // not hit by what hits our group
    close_all_but(its_end.get());
    Watch watch(its_end.get(), group, clock_, margin_, safe_until);
    if (!watch.works()) _exit(1);
    watch.run();
  }
  its_end.close();
  char word = 0;
  ssize_t got = -1;
  do {
    got = recv(line_.get(), &word, 1, 0);
  } while (got < 0 && errno == EINTR);
  if (got == 1 && word == kReady) return true;
  dismiss();
  errno = ECHILD;
  return false;
}

void Guard::tell(Time safe_until) {
  if (safe_until == told_) return;
  told_ = safe_until;
  [[maybe_unused]] const ssize_t sent =
      send(line_.get(), &safe_until, sizeof safe_until, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void Guard::tell_asked() {
  [[maybe_unused]] const ssize_t sent =
      send(line_.get(), &kAsked, sizeof kAsked, MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool Guard::acted() {
  char word = 0;
  ssize_t got = 0;
  while (line_.open() && (got = recv(line_.get(), &word, 1, MSG_DONTWAIT)) > 0)
    acted_ = acted_ || word == kActed;
  if (got == 0) line_.close();  // it is no more
  return acted_;
}

void Guard::reaped(pid_t pid) {
  if (pid != pid_) return;
  static_cast<void>(acted());
  pid_ = -1;
  if (!acted_) static_cast<void>(start(group_, told_));
}

void Guard::dismiss() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  pid_ = -1;
  line_.close();
}

}  // namespace idem::cli
