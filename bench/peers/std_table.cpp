// std::unordered_map behind 64 mutexes.
#include <unordered_map>

#include "peers/sharded.hpp"

namespace idem::bench {

Racer std_racer() {
  return racer_of<ShardedTable<std::unordered_map<Key36, PeerRecord, Key36Hash>>>(
      "std::unordered_map, 64 mutexes");
}

}  // namespace idem::bench
