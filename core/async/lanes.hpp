// The lanes of an asynchronous service: a few threads that ask the store for what has gathered.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <set>

#include "operation.hpp"

namespace idem::detail {

// Thread safe. Outlived by no operation that is not over.
class AsyncLanes {
 public:
  AsyncLanes(std::shared_ptr<ServiceImpl> service, std::size_t lanes);
  ~AsyncLanes();  // cancels what can be, waits for the rest

  // To a lane; without lanes it is done here, in the caller.
  void run(const std::shared_ptr<Operation>& operation);

  // Around a waiting: false if the lanes are closing. end_wait when its answer came, leave when
  // that was dealt with.
  bool begin_wait(Operation& operation);
  void end_wait(Operation& operation);
  void leave();

  [[nodiscard]] ServiceImpl& service() const { return *service_; }

 private:
  void execute(std::span<CombinerJob* const> jobs);

  const std::shared_ptr<ServiceImpl> service_;
  std::atomic<bool> closing_{false};
  std::mutex mutex_;  // guards what follows
  std::set<Operation*> waiting_;
  std::size_t inside_ = 0;  // begin_wait without leave
  std::condition_variable left_;
  std::optional<Combiner> combiner_;
};

}  // namespace idem::detail
