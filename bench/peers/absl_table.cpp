// absl::flat_hash_map behind 64 mutexes.
#include <absl/container/flat_hash_map.h>

#include "peers/sharded.hpp"

namespace idem::bench {

Racer absl_racer() {
  return racer_of<ShardedTable<absl::flat_hash_map<Key36, PeerRecord, Key36Hash>>>(
      "absl::flat_hash_map, 64 mutexes");
}

}  // namespace idem::bench
