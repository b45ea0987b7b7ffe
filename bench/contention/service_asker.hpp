// An asker that goes through IdempotencyService, as an application does.
#pragma once

#include <memory>
#include <optional>

#include "contention/contender.hpp"

namespace idem::bench {

// The service's options for a contention.
[[nodiscard]] ServiceOptions contention_options(Clock& clock);

class ServiceAsker : public Asker {
 public:
  // `store` may be shared with other askers; trips are counted for this thread alone, and by the
  // store itself if it `counts`.
  ServiceAsker(const StorePtr& store, Clock& clock, bool counts = false);

  Heard claim(const Request& request) override;
  bool complete(std::string_view result) override;
  void walk_away() override { lease_.reset(); }

 private:
  IdempotencyService service_;
  std::optional<Lease> lease_;
};

}  // namespace idem::bench
