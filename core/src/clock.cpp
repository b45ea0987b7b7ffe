// The machine's clock: the only file that asks it for the time.
#include "idem/clock.hpp"

#include <condition_variable>
#include <ctime>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

namespace idem {
namespace {

Micros boot_time() noexcept {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return std::chrono::seconds(now.tv_sec) +
         std::chrono::duration_cast<Micros>(std::chrono::nanoseconds(now.tv_nsec));
}

class SystemTimers final : public Timers {
 public:
  explicit SystemTimers(const Clock& clock) : clock_(clock) {}

  ~SystemTimers() override {
    {
      const std::lock_guard guard(mutex_);
      stopping_ = true;
      due_.clear();
      wake_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
  }

  Id call_at(Time at, std::function<void()> work) override {
    const std::lock_guard guard(mutex_);
    const Id id = ++last_id_;
    due_.emplace(std::pair(at, id), std::move(work));
    instants_.emplace(id, at);
    if (!thread_.joinable()) thread_ = std::thread([this] { loop(); });
    if (at < asleep_until_) wake_.notify_all();
    return id;
  }

  bool cancel(Id id) override {
    std::unique_lock lock(mutex_);
    if (const auto found = instants_.find(id); found != instants_.end()) {
      due_.erase({found->second, id});
      instants_.erase(found);
      return true;
    }
    if (id != 0 && std::this_thread::get_id() != thread_.get_id()) {  // 0: nothing was scheduled
      finished_.wait(lock, [&] { return running_ != id; });
    }
    return false;
  }

 private:
  static constexpr Micros kSleepMax = std::chrono::hours(1);

  void loop() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      const Time now = clock_.now();
      const Time next = due_.empty() ? now + kSleepMax : due_.begin()->first.first;
      if (next > now) {
        asleep_until_ = std::min(next, now + kSleepMax);
        wake_.wait_for(lock, asleep_until_ - now);
        asleep_until_ = Time::min();
        continue;
      }
      auto first = due_.extract(due_.begin());
      running_ = first.key().second;
      instants_.erase(running_);
      lock.unlock();
      first.mapped()();
      first.mapped() = nullptr;
      lock.lock();
      running_ = 0;
      finished_.notify_all();
    }
  }

  const Clock& clock_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable finished_;
  std::map<std::pair<Time, Id>, std::function<void()>> due_;
  std::map<Id, Time> instants_;
  // How long the thread sleeps; Time::min(): it does not, and will look at due_. Only what is due
  // earlier wakes it: an alarm that is set for a short piece of work and cancelled costs no
  // wake-up.
  Time asleep_until_ = Time::min();
  Id last_id_ = 0;
  Id running_ = 0;
  bool stopping_ = false;
  std::thread thread_;
};

class SystemClock final : public Clock {
 public:
  [[nodiscard]] Time now() const noexcept override { return start_ + (boot_time() - boot_start_); }
  [[nodiscard]] std::unique_ptr<Timers> timers() override {
    return std::make_unique<SystemTimers>(*this);
  }
  void pause(Micros d) override { std::this_thread::sleep_for(d); }
  [[nodiscard]] Micros offset() const noexcept override { return Micros(0); }

 private:
  Time start_ = std::chrono::time_point_cast<Micros>(std::chrono::system_clock::now());
  Micros boot_start_ = boot_time();
};

}  // namespace

Clock& system_clock() {
  static auto* const kClock = new SystemClock;  // never destroyed: threads may outlive main()
  return *kClock;
}

}  // namespace idem
