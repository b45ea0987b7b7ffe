// liburcu's cds_lfht with QSBR: a split-ordered list, readers that write nothing.
//
// A completion changes the node in place: the owner moves `status` from processing to completing,
// writes the result, and publishes it. A takeover replaces the node.
#define URCU_API_MAP
#define URCU_INLINE_SMALL_FUNCTIONS 1
#include <urcu/urcu-qsbr.h>
// Behind it: it is made for the flavour included before.
#include <urcu/rculfhash.h>

#include <bit>
#include <utility>

#include "peers/peer_record.hpp"
#include "peers/race.hpp"

namespace idem::bench {
namespace {

struct Node {
  cds_lfht_node node;
  rcu_head retired;
  Key36 key;
  std::int64_t expires;
  std::uint64_t token;
  std::atomic<char*> result;
  std::array<std::uint8_t, 32> fingerprint;
};

[[nodiscard]] Node& node_of(cds_lfht_node* at) { return *reinterpret_cast<Node*>(at); }

int matches(cds_lfht_node* at, const void* key) {
  return node_of(at).key == *static_cast<const Key36*>(key) ? 1 : 0;
}

void free_node(Node* node) {
  std::free(node->result.load(std::memory_order_relaxed));
  delete node;
}
void free_retired(rcu_head* head) {
  free_node(reinterpret_cast<Node*>(reinterpret_cast<char*>(head) - offsetof(Node, retired)));
}

class UrcuTable {
 public:
  explicit UrcuTable(const Setup& setup) : setup_(setup) {
    const unsigned long buckets = std::bit_ceil(setup.records + 1);
    table_ = cds_lfht_new(setup.records != 0 ? buckets : 64, 64, 0,
                          CDS_LFHT_AUTO_RESIZE | CDS_LFHT_ACCOUNTING, nullptr);
  }
  ~UrcuTable() {
    rcu_register_thread();
    cds_lfht_iter at;
    cds_lfht_node* node = nullptr;
    cds_lfht_for_each(table_, &at, node) {
      cds_lfht_del(table_, node);
      free_node(&node_of(node));
    }
    rcu_barrier();
    rcu_unregister_thread();
    cds_lfht_destroy(table_, nullptr);
  }
  UrcuTable(const UrcuTable&) = delete;
  UrcuTable& operator=(const UrcuTable&) = delete;

  class Caller : PeerCaller {
   public:
    explicit Caller(UrcuTable& table) : PeerCaller(table.setup_), table_(table.table_) {
      rcu_register_thread();
    }
    ~Caller() {
      delete spare_;
      rcu_unregister_thread();
    }
    Caller(const Caller&) = delete;
    Caller& operator=(const Caller&) = delete;

    // The node is made first; one that was not needed serves the next claim.
    Claim claim(const char* text) {
      const std::int64_t at = now();
      const std::uint64_t mine = ++number;
      const unsigned long hash = Key36Hash()(key_at(text));
      Node* made = spare_ != nullptr ? std::exchange(spare_, nullptr) : new Node;
      fill(*made, text, mine, at + keep);
      for (;;) {
        cds_lfht_node* const there =
            cds_lfht_add_unique(table_, hash, matches, &made->key, &made->node);
        if (there == &made->node) {
          rcu_quiescent_state();
          return {Verdict::won, {mine, 0}};
        }
        Node& found = node_of(there);
        if (at < found.expires) {
          const Verdict verdict = answer(found);
          spare_ = made;
          rcu_quiescent_state();
          return {verdict, {}};
        }
        if (cds_lfht_del(table_, there) == 0) call_rcu(&found.retired, free_retired);
      }
    }
    bool complete(const char* text, Token token) {
      Node* const found = find(text);
      const bool mine = found != nullptr && found->token == token.version &&
                        found->result.load(std::memory_order_relaxed) == nullptr;
      if (mine) {
        auto* const result = static_cast<char*>(std::malloc(kResultBytes));
        result_of(text, result);
        char* none = nullptr;
        found->result.compare_exchange_strong(none, result);
      }
      rcu_quiescent_state();
      return mine;
    }
    const char* replay(const char* text) {
      const Node* const found = find(text);
      const bool done = found != nullptr && answer(*found) == Verdict::replayed;
      rcu_quiescent_state();
      return done ? replayed.data() : nullptr;
    }
    void expire(const char* text) {
      Node* const found = find(text);
      if (found != nullptr && cds_lfht_del(table_, &found->node) == 0)
        call_rcu(&found->retired, free_retired);
      rcu_quiescent_state();
    }

   private:
    static void fill(Node& node, const char* text, std::uint64_t by, std::int64_t until) {
      cds_lfht_node_init(&node.node);
      node.key = key_at(text);
      node.expires = until;
      node.token = by;
      node.result.store(nullptr, std::memory_order_relaxed);
      node.fingerprint = request_fingerprint();
    }
    Node* find(const char* text) {
      cds_lfht_iter at;
      cds_lfht_lookup(table_, Key36Hash()(key_at(text)), matches, &key_at(text), &at);
      cds_lfht_node* const node = cds_lfht_iter_get_node(&at);
      return node != nullptr ? &node_of(node) : nullptr;
    }
    Verdict answer(const Node& found) {
      if (found.fingerprint != request_fingerprint()) return Verdict::mismatch;
      const char* const result = found.result.load(std::memory_order_acquire);
      if (result == nullptr) return Verdict::in_progress;
      std::memcpy(replayed.data(), result, kResultBytes);
      return Verdict::replayed;
    }

    cds_lfht* table_;
    Node* spare_ = nullptr;
  };

  [[nodiscard]] std::size_t size() {
    unsigned long count = 0;
    std::thread([&] {  // the calling thread may be registered already
      rcu_register_thread();
      long before = 0;
      long after = 0;
      cds_lfht_count_nodes(table_, &before, &count, &after);
      rcu_unregister_thread();
    })
        .join();
    return count;
  }

 private:
  const Setup setup_;
  cds_lfht* table_;
};

}  // namespace

Racer urcu_racer() { return racer_of<UrcuTable>("liburcu lfht (QSBR)"); }

}  // namespace idem::bench
