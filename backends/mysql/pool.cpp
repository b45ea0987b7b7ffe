#include "pool.hpp"

#include <algorithm>
#include <chrono>

namespace idem::mysql {
namespace {

constexpr Micros kPauseMin = std::chrono::milliseconds(250);
constexpr Micros kPauseMax = std::chrono::seconds(1);
// An idle connection may have been cut without our notice (server restart, firewall): asked first.
constexpr Micros kIdleTrusted = std::chrono::milliseconds(500);
// An attempt takes at least so long, whatever its caller's deadline.
constexpr Micros kConnectMin = std::chrono::milliseconds(100);
constexpr Micros kCloseLimit = std::chrono::milliseconds(100);

}  // namespace

Pool::Pool(MysqlOptions options, std::unique_ptr<boost::asio::ssl::context> tls)
    : options_(std::move(options)), tls_(std::move(tls)), random_(std::random_device{}()) {}

Pool::~Pool() {
  for (auto& session : idle_) session->connection().close(kCloseLimit);
}

std::uint64_t Pool::attempts() const {
  const std::lock_guard lock(mutex_);
  return attempts_;
}

result<std::unique_ptr<Session>> Pool::take(const Budget& budget) {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (auto session = take_idle(lock, budget)) return session;
    const bool away = failing_ && (trying_ || system_clock().now() < next_attempt_);
    if (made_ < options_.connections && !away) {
      auto session = make(lock, budget);
      if (session || none_in_sight()) return session;
      if (!idle_.empty()) continue;  // one came back meanwhile
    }
    if (away && none_in_sight()) {
      return fail(last_error_.code, last_error_.message + "; not asked again yet");
    }
    const Micros left = budget.left();
    if (left <= Micros(0)) {
      return fail(errc::unavailable, "all connections were in use until the deadline");
    }
    // Bounded: a session in use may fail to come back in time, and a pause ends without a sign.
    changed_.wait_for(lock, std::min(left, kPauseMin));
  }
}

// Whether nobody has a session, or may be about to get one: then waiting for one is vain.
bool Pool::none_in_sight() const { return idle_.empty() && in_use_ == 0 && hopeful_ == 0; }

// An idle session that works; nullptr if there is none. Releases the lock while it asks one.
std::unique_ptr<Session> Pool::take_idle(std::unique_lock<std::mutex>& lock, const Budget& budget) {
  while (!idle_.empty()) {
    auto session = std::move(idle_.back());
    idle_.pop_back();
    ++in_use_;
    if (system_clock().now() - session->idle_since < kIdleTrusted) return session;
    lock.unlock();
    const bool alive = session->connection().alive(std::min(budget.left(), kConnectLimit));
    if (!alive) session.reset();
    lock.lock();
    if (alive) return session;
    --in_use_;
    --made_;
  }
  return nullptr;
}

result<std::unique_ptr<Session>> Pool::make(std::unique_lock<std::mutex>& lock,
                                            const Budget& budget) {
  if (budget.over()) return fail(errc::unavailable, "no time was left to connect");
  ++made_;
  ++attempts_;
  const bool hopeful = !failing_;
  hopeful_ += hopeful ? 1 : 0;
  trying_ = true;
  lock.unlock();
  // A caller with little time left says nothing about the server.
  auto session = Session::open(options_, tls_.get(), std::max(budget.left(), kConnectMin));
  lock.lock();
  trying_ = false;
  hopeful_ -= hopeful ? 1 : 0;
  changed_.notify_all();
  if (session) {
    failing_ = false;
    pause_ = Micros(0);
    ++in_use_;
  } else {
    --made_;
    note_failure(session.error());
  }
  return session;
}

void Pool::note_failure(const Error& error) {
  pause_ = std::clamp(pause_ * 3 / 2, kPauseMin, kPauseMax);
  std::uniform_int_distribution<std::int64_t> jittered(pause_.count() / 2, pause_.count());
  failing_ = true;
  next_attempt_ = system_clock().now() + Micros(jittered(random_));
  last_error_ = error;
}

void Pool::give_back(std::unique_ptr<Session> session) {
  const bool usable = session->usable();
  if (!usable) session.reset();
  {
    const std::lock_guard lock(mutex_);
    --in_use_;
    if (usable) {
      session->idle_since = system_clock().now();
      idle_.push_back(std::move(session));
    } else {
      --made_;
    }
  }
  changed_.notify_one();
}

}  // namespace idem::mysql
