// tbb::concurrent_hash_map: a lock per element, held through an accessor.
#include <tbb/concurrent_hash_map.h>

#include "peers/peer_record.hpp"
#include "peers/race.hpp"

namespace idem::bench {
namespace {

struct TbbHash {
  [[nodiscard]] static std::size_t hash(const Key36& key) { return Key36Hash()(key); }
  [[nodiscard]] static bool equal(const Key36& a, const Key36& b) { return a == b; }
};

class TbbTable {
 public:
  using Map = tbb::concurrent_hash_map<Key36, PeerRecord, TbbHash>;

  explicit TbbTable(const Setup& setup) : setup_(setup), map_(setup.records + 1) {}

  class Caller : PeerCaller {
   public:
    explicit Caller(TbbTable& table) : PeerCaller(table.setup_), map_(table.map_) {}

    Claim claim(const char* text) {
      const std::int64_t at = now();
      const std::uint64_t mine = ++number;
      {
        Map::const_accessor found;
        if (map_.emplace(found, std::piecewise_construct, std::forward_as_tuple(key_at(text)),
                         std::forward_as_tuple(mine, at + keep)))
          return {Verdict::won, {mine, 0}};
        if (!found->second.expired(at)) return {found->second.answer(replayed.data()), {}};
      }
      Map::accessor found;
      if (!map_.find(found, key_at(text))) return claim(text);
      if (!found->second.expired(at)) return {found->second.answer(replayed.data()), {}};
      found->second.take_over(mine, at + keep);
      return {Verdict::won, {mine, 0}};
    }
    bool complete(const char* text, Token token) {
      Map::accessor found;
      return map_.find(found, key_at(text)) && found->second.complete(token.version, text);
    }
    const char* replay(const char* text) {
      Map::const_accessor found;
      const bool done = map_.find(found, key_at(text)) && found->second.replay(replayed.data());
      return done ? replayed.data() : nullptr;
    }
    void expire(const char* text) { map_.erase(key_at(text)); }

   private:
    Map& map_;
  };

  [[nodiscard]] std::size_t size() const { return map_.size(); }

 private:
  const Setup setup_;
  Map map_;
};

}  // namespace

Racer tbb_racer() { return racer_of<TbbTable>("tbb::concurrent_hash_map"); }

}  // namespace idem::bench
