// The requests of a plan, made before the timer runs.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "idem/service.hpp"

namespace idem::bench {

// One request for each key number of a plan: a key of 36 characters shaped like a UUID and a
// fingerprint, both following from seed and number. Fingerprints are not hashes of anything: what
// SHA-256 costs is a matter of the request's size, not of the store. About 220 bytes a key.
class Requests {
 public:
  Requests(std::uint32_t keys, std::uint64_t seed);

  // Gives all of them a new identity: the tenant. At most 15 characters, so that nothing allocates.
  void set_scope(std::string_view scope);

  [[nodiscard]] const Request& operator[](std::uint32_t key) const { return requests_[key]; }
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(requests_.size()); }

 private:
  std::vector<Request> requests_;
};

}  // namespace idem::bench
