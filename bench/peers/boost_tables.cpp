// boost::concurrent_flat_map and concurrent_node_map.
#include <boost/unordered/concurrent_flat_map.hpp>
#include <boost/unordered/concurrent_node_map.hpp>
#include <span>

#include "peers/peer_record.hpp"
#include "peers/race.hpp"

namespace idem::bench {
namespace {

template <class Map>
class BoostTable {
 public:
  explicit BoostTable(const Setup& setup) : setup_(setup), map_(setup.records) {}

  class Caller : PeerCaller {
   public:
    explicit Caller(BoostTable& table) : PeerCaller(table.setup_), map_(table.map_) {}

    Claim claim(const char* text) {
      const Key36& key = key_at(text);
      const std::int64_t at = now();
      const std::uint64_t mine = ++number;
      Verdict verdict = Verdict::won;
      bool dead = false;
      map_.try_emplace_or_cvisit(key, mine, at + keep, [&](const auto& found) {
        dead = found.second.expired(at);
        verdict = found.second.answer(replayed.data());
      });
      if (!dead) return {verdict, {mine, 0}};
      map_.visit(key, [&](auto& found) {
        if (!found.second.expired(at)) {
          verdict = found.second.answer(replayed.data());
        } else {
          found.second.take_over(mine, at + keep);
          verdict = Verdict::won;
        }
      });
      return {verdict, {mine, 0}};
    }
    bool complete(const char* text, Token token) {
      bool done = false;
      map_.visit(key_at(text),
                 [&](auto& found) { done = found.second.complete(token.version, text); });
      return done;
    }
    const char* replay(const char* text) {
      bool done = false;
      map_.cvisit(key_at(text),
                  [&](const auto& found) { done = found.second.replay(replayed.data()); });
      return done ? replayed.data() : nullptr;
    }
    // Boost's bulk visit: it hands the records over in no order, so the sums are all there is.
    template <class Each>
    void replay_batch(const char* texts, std::size_t count, Each&& each) {
      const auto* const keys = reinterpret_cast<const Key36*>(texts);
      std::size_t done = 0;
      map_.cvisit(keys, keys + count, [&](const auto& found) {
        done += found.second.replay(batch_[done].data()) ? 1 : 0;
      });
      for (std::size_t i = 0; i < done; ++i) each(batch_[i].data());
    }
    void expire(const char* text) { map_.erase(key_at(text)); }

   private:
    Map& map_;
    std::array<std::array<char, kResultBytes>, kBatchMax> batch_{};
  };

  [[nodiscard]] std::size_t size() const { return map_.size(); }

 private:
  const Setup setup_;
  Map map_;
};

}  // namespace

Racer boost_flat_racer() {
  return racer_of<BoostTable<boost::concurrent_flat_map<Key36, PeerRecord, Key36Hash>>>(
      "boost::concurrent_flat_map");
}
Racer boost_node_racer() {
  return racer_of<BoostTable<boost::concurrent_node_map<Key36, PeerRecord, Key36Hash>>>(
      "boost::concurrent_node_map");
}

}  // namespace idem::bench
