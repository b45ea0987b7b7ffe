// Our own memory store, at its contract: spans of one request, or of many.
#include <algorithm>
#include <memory>

#include "idem/memory_store.hpp"
#include "peers/race.hpp"

namespace idem::bench {
namespace {

class IdemTable {
 public:
  explicit IdemTable(const Setup& setup) : setup_(setup) {
    MemoryOptions options;
    options.initial_capacity = setup.records;
    options.clock = &race_clock();
    store_ = std::make_unique<MemoryStore>(options);
  }

  class Caller {
   public:
    explicit Caller(IdemTable& table)
        : store_(*table.store_), inserts_(kBatchMax), loads_(kBatchMax) {
      Draft& claim = inserts_[0].draft;
      claim.request_hash.bytes = request_fingerprint();
      claim.owner = Owner::random();
      claim.lease = std::min<Micros>(table.setup_.keep, std::chrono::seconds(30));
      claim.keep = table.setup_.keep;
      for (Insert& op : inserts_) op.draft = claim;
      replace_.draft = claim;
      replace_.draft.status = Status::success;
      replace_.draft.fresh = false;
      replace_.draft.lease = {};
      replace_.draft.result = {result_.data(), result_.size()};
    }

    Claim claim(const char* text) {
      Insert& op = inserts_[0];
      op.key.key = {text, kKeyBytes};
      store_.insert({&op, 1});
      return judge(op);
    }
    void claim_batch(const char* texts, std::size_t count, Claim* claims) {
      for (std::size_t i = 0; i < count; ++i)
        inserts_[i].key.key = {texts + i * kKeyBytes, kKeyBytes};
      store_.insert({inserts_.data(), count});
      for (std::size_t i = 0; i < count; ++i) claims[i] = judge(inserts_[i]);
    }
    bool complete(const char* text, Token token) {
      result_of(text, result_.data());
      replace_.key.key = {text, kKeyBytes};
      replace_.expected = token.version;
      replace_.draft.fence = token.fence;
      store_.replace({&replace_, 1});
      return replace_.answer.state == Answer::State::written;
    }
    const char* replay(const char* text) {
      Load& op = loads_[0];
      op.key.key = {text, kKeyBytes};
      store_.load({&op, 1});
      return result_in(op);
    }
    template <class Each>
    void replay_batch(const char* texts, std::size_t count, Each&& each) {
      for (std::size_t i = 0; i < count; ++i)
        loads_[i].key.key = {texts + i * kKeyBytes, kKeyBytes};
      store_.load({loads_.data(), count});
      for (std::size_t i = 0; i < count; ++i)
        if (const char* const result = result_in(loads_[i])) each(result);
    }

   private:
    // As the state machine would: who stands there, with which request, and is it alive.
    Claim judge(Insert& op) {
      if (op.answer.state == Answer::State::written)
        return {Verdict::won, {op.answer.held.version, op.answer.held.fence}};
      if (op.answer.state != Answer::State::stands) return {};
      const Record& held = op.answer.held;
      if (held.expired(op.answer.now)) return take_over(op);
      if (held.request_hash != op.draft.request_hash) return {Verdict::mismatch, {}};
      return {held.status == Status::success ? Verdict::replayed : Verdict::in_progress, {}};
    }
    Claim take_over(Insert& op) {
      Replace over{op.key, op.answer.held.version, op.draft, {}};
      store_.replace({&over, 1});
      if (over.answer.state == Answer::State::written)
        return {Verdict::won, {over.answer.held.version, over.answer.held.fence}};
      return claim(op.key.key.data());
    }
    static const char* result_in(const Load& op) {
      if (op.answer.state != Answer::State::stands) return nullptr;
      const Record& held = op.answer.held;
      if (held.status != Status::success || held.result.size() != kResultBytes) return nullptr;
      return held.result.data();
    }

    IdempotencyStore& store_;
    std::vector<Insert> inserts_;
    std::vector<Load> loads_;
    Replace replace_;
    std::array<char, kResultBytes> result_{};
  };

  [[nodiscard]] std::size_t size() const { return store_->gauges().records; }
  // As a service's sweeper does once in a while.
  void sweep() { static_cast<void>(store_->sweep(1000)); }
  void sweep_all() {
    while (store_->sweep(10'000).value() != 0) {
    }
  }
  [[nodiscard]] std::size_t bytes() const { return store_->gauges().bytes; }

 private:
  const Setup setup_;
  std::unique_ptr<MemoryStore> store_;
};

}  // namespace

Racer idem_racer() { return racer_of<IdemTable>("idem"); }

}  // namespace idem::bench
