// Two ways to claim and complete, for the same scenarios: at the store's contract, and through the
// service (policy, state machine, lease handle and all). One caller to a thread.
#pragma once

#include <optional>
#include <string>

#include "idem/service.hpp"

namespace idem::bench {

enum class Claim : std::uint8_t { won, replayed, in_progress, error };

// insert and replace, nothing else.
class StoreCaller {
 public:
  static constexpr const char* kName = "store";
  using Target = IdempotencyStore;

  StoreCaller();
  Claim claim(IdempotencyStore& store, KeyRef key);
  // Of the claim just won.
  bool complete(IdempotencyStore& store);

 private:
  Insert insert_;
  Replace replace_;
};

class ServiceCaller {
 public:
  static constexpr const char* kName = "service";
  using Target = IdempotencyService;

  ServiceCaller();
  Claim claim(IdempotencyService& service, KeyRef key);
  bool complete(IdempotencyService& service);

 private:
  Request request_;
  std::optional<Lease> lease_;
};

// What every benchmark's request and result are.
[[nodiscard]] Fingerprint benchmark_fingerprint();
[[nodiscard]] std::string_view benchmark_result();  // 64 bytes

}  // namespace idem::bench
