#include "broken_stores.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <thread>

#include "idem/testing/forwarding_store.hpp"
#include "idem/testing/reference_store.hpp"

namespace idem::conformance {
namespace {

using State = Answer::State;
using testing::ForwardingStore;
using testing::ReferenceStore;

// One item at a time, so that a fault can be put between two of them.
class Broken : public ForwardingStore {
 public:
  explicit Broken(Clock& clock)
      : ForwardingStore(std::make_shared<ReferenceStore>(clock)), clock_(clock) {}

 protected:
  Answer insert_one(const Insert& op) {
    Insert copy = op;
    behind().insert({&copy, 1});
    return copy.answer;
  }
  Answer replace_one(KeyRef key, std::uint64_t expected, const Draft& draft) {
    Replace op{key, expected, draft, {}};
    behind().replace({&op, 1});
    return op.answer;
  }
  Answer load_one(KeyRef key) {
    Load op{key, {}};
    behind().load({&op, 1});
    return op.answer;
  }
  Answer remove_one(KeyRef key, std::uint64_t expected) {
    Remove op{key, expected, {}};
    behind().remove({&op, 1});
    return op.answer;
  }
  [[nodiscard]] Clock& clock() { return clock_; }

 private:
  Clock& clock_;
};

class Healthy final : public Broken {
  using Broken::Broken;
};

// SELECT, then INSERT: whoever comes in between wins, too.
class InsertIsCheckThenWrite final : public Broken {
 public:
  using Broken::Broken;
  void insert(std::span<Insert> ops) override {
    for (Insert& op : ops) {
      op.answer = load_one(op.key);
      if (op.answer.state == State::stands) continue;
      for (int i = 0; i < 10; ++i) std::this_thread::yield();
      Answer made = insert_one(op);
      while (made.state == State::stands) {  // "I looked: it is free", so write over it
        made = replace_one(op.key, made.held.version, op.draft);
      }
      op.answer = made;
    }
  }
};

// UPDATE ... WHERE key = ?: whoever held the key before, the last writer has it.
class ReplaceIgnoresTheVersion final : public Broken {
 public:
  using Broken::Broken;
  void replace(std::span<Replace> ops) override {
    for (Replace& op : ops) {
      op.answer = load_one(op.key);
      if (op.answer.state != State::stands) continue;
      op.answer = replace_one(op.key, op.answer.held.version, op.draft);
    }
  }
};

// UPDATE ... WHERE key = ? AND status = 0: a stale owner completes its successor's attempt.
class CompleteTestsTheStatusOnly final : public Broken {
 public:
  using Broken::Broken;
  void replace(std::span<Replace> ops) override {
    for (Replace& op : ops) {
      const Answer seen = load_one(op.key);
      const bool completes = op.draft.status == Status::success;
      const bool processing = seen.state == State::stands && seen.held.status == Status::processing;
      const std::uint64_t version = completes && processing ? seen.held.version : op.expected;
      op.answer = replace_one(op.key, version, op.draft);
    }
  }
};

// Keeps what was written last, not first.
class LastResultWins final : public Broken {
 public:
  using Broken::Broken;
  void replace(std::span<Replace> ops) override {
    for (Replace& op : ops) {
      const Answer seen = load_one(op.key);
      const bool both = seen.state == State::stands && seen.held.status == Status::success &&
                        op.draft.status == Status::success;
      op.answer = replace_one(op.key, both ? seen.held.version : op.expected, op.draft);
    }
  }
};

// Records never expire.
class TtlIsIgnored final : public Broken {
 public:
  using Broken::Broken;
  void insert(std::span<Insert> ops) override {
    for (Insert& op : ops) op.draft.keep = 10 * kDurationMax;
    Broken::insert(ops);
  }
  void replace(std::span<Replace> ops) override {
    for (Replace& op : ops) op.draft.keep = 10 * kDurationMax;
    Broken::replace(ops);
  }
};

// A finished record tells everyone's hash as its own: another request gets its result.
class HashIsIgnoredInSuccess final : public Broken {
 public:
  using Broken::Broken;
  void insert(std::span<Insert> ops) override {
    Broken::insert(ops);
    for (Insert& op : ops) {
      if (op.answer.state == State::stands && op.answer.held.status == Status::success) {
        op.answer.held.request_hash = op.draft.request_hash;
      }
    }
  }
};

// Compares and keeps only half of the hash.
class HashIsCutInHalf final : public Broken {
 public:
  using Broken::Broken;
  void insert(std::span<Insert> ops) override {
    Broken::insert(ops);
    for (Insert& op : ops) {
      if (op.answer.state != State::stands) continue;
      std::copy(op.draft.request_hash.bytes.begin() + 16, op.draft.request_hash.bytes.end(),
                op.answer.held.request_hash.bytes.begin() + 16);
    }
  }
};

// Answers with a clock of its own that is an hour ahead of the one that wrote the lease.
class LeaseIsJudgedByAnotherClock final : public Broken {
 public:
  using Broken::Broken;
  void insert(std::span<Insert> ops) override {
    Broken::insert(ops);
    for (Insert& op : ops) ahead(op.answer);
  }
  void load(std::span<Load> ops) override {
    Broken::load(ops);
    for (Load& op : ops) ahead(op.answer);
  }

 private:
  static void ahead(Answer& answer) {
    if (answer.state == State::stands) answer.now += std::chrono::hours(1);
  }
};

// INSERT ... ON DUPLICATE KEY UPDATE for a complete: brings back what was removed.
class CompleteResurrects final : public Broken {
 public:
  using Broken::Broken;
  void replace(std::span<Replace> ops) override {
    for (Replace& op : ops) {
      op.answer = replace_one(op.key, op.expected, op.draft);
      if (op.answer.state == State::absent) op.answer = insert_one({op.key, op.draft, {}});
    }
  }
};

// Takes writes on expired records as if they lived.
class TheDeadAreResurrected final : public Broken {
 public:
  using Broken::Broken;
  void replace(std::span<Replace> ops) override {
    for (Replace& op : ops) {
      Draft draft = op.draft;
      const Answer seen = load_one(op.key);
      if (seen.state == State::stands && seen.held.expired(seen.now)) draft.fresh = true;
      op.answer = replace_one(op.key, op.expected, draft);
    }
  }
};

// The cleaner of the folk recipe: removes whatever is older than its lease.
class SweepRemovesTheLapsed final : public Broken {
 public:
  using Broken::Broken;
  result<std::uint64_t> sweep(std::size_t limit) override {
    ListQuery query;
    query.status = Status::processing;
    query.limit = limit;
    std::uint64_t removed = 0;
    const auto page = behind().list(query);
    for (const Listed& item : page->items) {
      if (page->now < item.record.lease_until) continue;
      if (remove_one(item.key, item.record.version).state == State::written) ++removed;
    }
    const auto rest = behind().sweep(limit - std::min<std::uint64_t>(limit, removed));
    return removed + *rest;
  }
};

// Decides what is expired, then removes by key alone.
class SweepRemovesByKeyAlone final : public Broken {
 public:
  using Broken::Broken;
  void insert(std::span<Insert> ops) override {
    Broken::insert(ops);
    note(ops);
  }
  void replace(std::span<Replace> ops) override {
    Broken::replace(ops);
    // The time of the first write is what its index knows: a renewal does not move it.
  }
  result<std::uint64_t> sweep(std::size_t limit) override {
    std::uint64_t removed = 0;
    const std::lock_guard guard(mutex_);
    for (auto at = ends_.begin(); at != ends_.end() && removed < limit;) {
      if (clock().now() < at->second) {
        ++at;
        continue;
      }
      const Answer seen = load_one(at->first);
      if (seen.state == State::stands &&
          remove_one(at->first, seen.held.version).state == State::written) {
        ++removed;
      }
      at = ends_.erase(at);
    }
    return removed;
  }

 private:
  void note(std::span<Insert> ops) {
    const std::lock_guard guard(mutex_);
    for (const Insert& op : ops) {
      if (op.answer.state == State::written) ends_[Key(op.key)] = op.answer.held.expires_at;
    }
  }

  std::mutex mutex_;
  std::map<Key, Time> ends_;
};

// One item of a batch failed; the batch says all is well.
class BatchErrorsAreSwallowed final : public Broken {
 public:
  using Broken::Broken;
  void insert(std::span<Insert> ops) override {
    Broken::insert(ops);
    for (Insert& op : ops) {
      if (op.answer.state == State::failed && ops.size() > 1) {
        op.answer.state = State::written;
        op.answer.now = clock().now();
      }
    }
  }
};

// Answers of a batch come in the order of the keys, or of the server, not of the items.
class BatchAnswersAreReversed final : public Broken {
 public:
  using Broken::Broken;
  void insert(std::span<Insert> ops) override {
    Broken::insert(ops);
    for (std::size_t i = 0; i < ops.size() / 2; ++i) {
      std::swap(ops[i].answer, ops[ops.size() - 1 - i].answer);
    }
  }
};

// TEXT holds 65,535 bytes.
class ResultIsTruncated final : public Broken {
 public:
  using Broken::Broken;
  void replace(std::span<Replace> ops) override {
    for (Replace& op : ops) op.draft.result = op.draft.result.substr(0, 65535);
    Broken::replace(ops);
  }
};

// C strings: a result ends at its first NUL.
class ResultEndsAtNul final : public Broken {
 public:
  using Broken::Broken;
  void replace(std::span<Replace> ops) override {
    for (Replace& op : ops) op.draft.result = op.draft.result.substr(0, op.draft.result.find('\0'));
    Broken::replace(ops);
  }
};

// utf8mb4_general_ci: "ABC" is "abc".
class KeysIgnoreCase final : public Broken {
 public:
  using Broken::Broken;
  void insert(std::span<Insert> ops) override { folded(ops, &IdempotencyStore::insert); }
  void replace(std::span<Replace> ops) override { folded(ops, &IdempotencyStore::replace); }
  void load(std::span<Load> ops) override { folded(ops, &IdempotencyStore::load); }
  void remove(std::span<Remove> ops) override { folded(ops, &IdempotencyStore::remove); }

 private:
  template <class Op>
  void folded(std::span<Op> ops, void (IdempotencyStore::*call)(std::span<Op>)) {
    for (Op& op : ops) {
      std::string lower(op.key.key);
      std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) {
        return static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
      });
      Op copy = op;
      copy.key.key = lower;
      (behind().*call)({&copy, 1});
      op.answer = std::move(copy.answer);
    }
  }
};

// The scope is stored, but the unique key is on the key alone.
class ScopeIsIgnored final : public Broken {
 public:
  using Broken::Broken;
  void insert(std::span<Insert> ops) override { unscoped(ops, &IdempotencyStore::insert); }
  void replace(std::span<Replace> ops) override { unscoped(ops, &IdempotencyStore::replace); }
  void load(std::span<Load> ops) override { unscoped(ops, &IdempotencyStore::load); }
  void remove(std::span<Remove> ops) override { unscoped(ops, &IdempotencyStore::remove); }

 private:
  template <class Op>
  void unscoped(std::span<Op> ops, void (IdempotencyStore::*call)(std::span<Op>)) {
    for (Op& op : ops) {
      Op copy = op;
      copy.key = {"", "", op.key.key};
      (behind().*call)({&copy, 1});
      op.answer = std::move(copy.answer);
    }
  }
};

// The counter is in the record: removed and made again, it starts again, and an old token fits.
class FencesStartAgain final : public Broken {
 public:
  using Broken::Broken;
  void insert(std::span<Insert> ops) override {
    for (Insert& op : ops) {
      if (op.draft.fence == 0) op.draft.fence = 1;
    }
    Broken::insert(ops);
  }
  void replace(std::span<Replace> ops) override {
    for (Replace& op : ops) {
      const Answer seen = load_one(op.key);
      if (op.draft.fence == 0 && seen.state == State::stands) {
        op.draft.fence = seen.held.fence + 1;
      }
    }
    Broken::replace(ops);
  }
};

// A renewal is taken for a new attempt: what was sent downstream is refused there.
class RenewalChangesTheFence final : public Broken {
 public:
  using Broken::Broken;
  void replace(std::span<Replace> ops) override {
    for (Replace& op : ops) {
      if (op.draft.status == Status::processing) op.draft.fence = 0;
    }
    Broken::replace(ops);
  }
};

// Reads from a replica that lags: what was acknowledged is not seen.
class ReadsAreStale final : public Broken {
 public:
  using Broken::Broken;
  void replace(std::span<Replace> ops) override {
    {
      const std::lock_guard guard(mutex_);
      for (Replace& op : ops) lagging_[Key(op.key)] = load_one(op.key);
    }
    Broken::replace(ops);
  }
  void load(std::span<Load> ops) override {
    const std::lock_guard guard(mutex_);
    for (Load& op : ops) {
      const auto found = lagging_.find(Key(op.key));
      if (found == lagging_.end()) {
        op.answer = load_one(op.key);
      } else {
        op.answer = found->second;
        lagging_.erase(found);  // the replica catches up
      }
    }
  }

 private:
  std::mutex mutex_;
  std::map<Key, Answer> lagging_;
};

// DELETE ... WHERE key = ?: the successor's record goes with the stale owner's release.
class RemoveIgnoresTheVersion final : public Broken {
 public:
  using Broken::Broken;
  void remove(std::span<Remove> ops) override {
    for (Remove& op : ops) {
      const Answer seen = load_one(op.key);
      op.answer = remove_one(op.key, seen.state == State::stands ? seen.held.version : 0);
    }
  }
};

// A page is found by counting, so what goes meanwhile shifts the rest out of sight.
class PagesAreCounted final : public Broken {
 public:
  using Broken::Broken;
  result<Page> list(const ListQuery& query) override {
    ListQuery whole = query;
    whole.cursor.clear();
    const std::size_t skip = query.cursor.empty() ? 0 : std::stoul(query.cursor);
    whole.limit = skip + query.limit + 1;
    Page page = behind().list(whole).value();
    const bool more = page.items.size() > skip + query.limit;
    if (more) page.items.pop_back();
    page.items.erase(page.items.begin(), page.items.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                                  skip, page.items.size())));
    page.cursor = more ? std::to_string(skip + query.limit) : "";
    return page;
  }
};

// A lease in seconds, stored as milliseconds.
class LeaseIsInOtherUnits final : public Broken {
 public:
  using Broken::Broken;
  void insert(std::span<Insert> ops) override {
    for (Insert& op : ops) op.draft.lease /= 1000;
    Broken::insert(ops);
  }
};

template <class Store>
BrokenStore broken(std::string name, std::string fault) {
  return {std::move(name), std::move(fault),
          [](Clock& clock) -> StorePtr { return std::make_shared<Store>(clock); }};
}

}  // namespace

const std::vector<BrokenStore>& broken_stores() {
  static const std::vector<BrokenStore> all{
      broken<Healthy>("healthy", "nothing"),
      broken<InsertIsCheckThenWrite>("non_atomic_insert", "insert looks, then writes"),
      broken<ReplaceIgnoresTheVersion>("no_fence_check", "replace ignores the version"),
      broken<CompleteTestsTheStatusOnly>("status_only_complete", "complete tests the status only"),
      broken<LastResultWins>("last_result", "the last result wins, not the first"),
      broken<TtlIsIgnored>("ttl_ignored", "records never expire"),
      broken<HashIsIgnoredInSuccess>("hash_ignored_in_success", "a finished record fits any hash"),
      broken<HashIsCutInHalf>("hash_cut_in_half", "only 16 bytes of the hash are compared"),
      broken<LeaseIsJudgedByAnotherClock>("other_clock", "now is another clock's"),
      broken<CompleteResurrects>("resurrecting_complete", "replace inserts what is away"),
      broken<TheDeadAreResurrected>("dead_resurrected", "replace revives the expired"),
      broken<SweepRemovesTheLapsed>("sweep_of_lapsed", "sweep removes what lapsed"),
      broken<SweepRemovesByKeyAlone>("sweep_of_live", "sweep removes renewed records"),
      broken<BatchErrorsAreSwallowed>("swallowed_batch_error", "a failed item counts as written"),
      broken<BatchAnswersAreReversed>("reversed_batch", "answers come in another order"),
      broken<ResultIsTruncated>("result_truncated", "65,535 bytes of a result are kept"),
      broken<ResultEndsAtNul>("result_ends_at_nul", "a result ends at its first NUL"),
      broken<KeysIgnoreCase>("keys_ignore_case", "ABC is abc"),
      broken<ScopeIsIgnored>("scope_ignored", "tenant and biz_type are not part of the key"),
      broken<FencesStartAgain>("fences_start_again", "fences are counted inside the record"),
      broken<RenewalChangesTheFence>("renewal_new_fence", "a renewal gives a new fence"),
      broken<ReadsAreStale>("stale_reads", "load misses acknowledged writes"),
      broken<RemoveIgnoresTheVersion>("blind_remove", "remove ignores the version"),
      broken<PagesAreCounted>("counted_pages", "a cursor is a count"),
      broken<LeaseIsInOtherUnits>("lease_units", "a lease is a thousandth of what was asked"),
  };
  return all;
}

}  // namespace idem::conformance
