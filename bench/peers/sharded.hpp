// Any map of one thread behind 64 mutexes, chosen by the top bits of the hash.
#pragma once

#include <array>
#include <mutex>

#include "peers/peer_record.hpp"
#include "peers/race.hpp"

namespace idem::bench {

template <class Map>
class ShardedTable {
 public:
  static constexpr std::size_t kShards = 64;

  explicit ShardedTable(const Setup& setup) : setup_(setup) {
    for (Shard& shard : shards_) shard.map.reserve(setup.records / kShards);
  }

  class Caller : PeerCaller {
   public:
    explicit Caller(ShardedTable& table) : PeerCaller(table.setup_), table_(table) {}

    Claim claim(const char* text) {
      const Key36& key = key_at(text);
      const std::int64_t at = now();
      const std::uint64_t mine = ++number;
      Shard& shard = table_.shard(key);
      const std::lock_guard<std::mutex> lock(shard.guard);
      const auto [found, fresh] = shard.map.try_emplace(key, mine, at + keep);
      if (fresh) return {Verdict::won, {mine, 0}};
      if (!found->second.expired(at)) return {found->second.answer(replayed.data()), {}};
      found->second.take_over(mine, at + keep);
      return {Verdict::won, {mine, 0}};
    }
    bool complete(const char* text, Token token) {
      Shard& shard = table_.shard(key_at(text));
      const std::lock_guard<std::mutex> lock(shard.guard);
      const auto found = shard.map.find(key_at(text));
      return found != shard.map.end() && found->second.complete(token.version, text);
    }
    const char* replay(const char* text) {
      Shard& shard = table_.shard(key_at(text));
      const std::lock_guard<std::mutex> lock(shard.guard);
      const auto found = shard.map.find(key_at(text));
      const bool done = found != shard.map.end() && found->second.replay(replayed.data());
      return done ? replayed.data() : nullptr;
    }
    void expire(const char* text) {
      Shard& shard = table_.shard(key_at(text));
      const std::lock_guard<std::mutex> lock(shard.guard);
      shard.map.erase(key_at(text));
    }

   private:
    ShardedTable& table_;
  };

  [[nodiscard]] std::size_t size() {
    std::size_t sum = 0;
    for (Shard& shard : shards_) sum += shard.map.size();
    return sum;
  }

 private:
  struct alignas(64) Shard {
    std::mutex guard;
    Map map;
  };
  [[nodiscard]] Shard& shard(const Key36& key) { return shards_[Key36Hash()(key) >> 58]; }

  const Setup setup_;
  std::array<Shard, kShards> shards_;
};

}  // namespace idem::bench
