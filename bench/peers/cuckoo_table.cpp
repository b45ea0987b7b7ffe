// libcuckoo: two buckets to a key, a spin lock per stripe of buckets.
#include <libcuckoo/cuckoohash_map.hh>

#include "peers/peer_record.hpp"
#include "peers/race.hpp"

namespace idem::bench {
namespace {

class CuckooTable {
 public:
  using Map = libcuckoo::cuckoohash_map<Key36, PeerRecord, Key36Hash>;

  explicit CuckooTable(const Setup& setup)
      : setup_(setup), map_(setup.records != 0 ? setup.records : libcuckoo::DEFAULT_SIZE) {}

  class Caller : PeerCaller {
   public:
    explicit Caller(CuckooTable& table) : PeerCaller(table.setup_), map_(table.map_) {}

    Claim claim(const char* text) {
      const std::int64_t at = now();
      const std::uint64_t mine = ++number;
      Verdict verdict = Verdict::won;
      // The function is called, under the locks, only for a record that was there.
      map_.upsert(
          key_at(text),
          [&](PeerRecord& found) {
            if (!found.expired(at)) {
              verdict = found.answer(replayed.data());
            } else {
              found.take_over(mine, at + keep);
            }
          },
          mine, at + keep);
      return {verdict, {mine, 0}};
    }
    bool complete(const char* text, Token token) {
      bool done = false;
      map_.update_fn(key_at(text),
                     [&](PeerRecord& found) { done = found.complete(token.version, text); });
      return done;
    }
    const char* replay(const char* text) {
      bool done = false;
      map_.find_fn(key_at(text),
                   [&](const PeerRecord& found) { done = found.replay(replayed.data()); });
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

Racer cuckoo_racer() { return racer_of<CuckooTable>("libcuckoo"); }

}  // namespace idem::bench
