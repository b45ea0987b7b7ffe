#include "idem/sequence_guard.hpp"

#include <charconv>

namespace idem {
namespace {

// `unknown` is repeated this often before the caller hears of it; other rounds are races, each of
// which somebody won.
constexpr int kUnknownTries = 3;

result<std::uint64_t> mark_of(const Record& record) {
  std::uint64_t seq = 0;
  const char* end = record.result.data() + record.result.size();
  const auto parsed = std::from_chars(record.result.data(), end, seq);
  if (parsed.ec != std::errc() || parsed.ptr != end) {
    return idem::fail(errc::corrupt, "the record of this stream is not a sequence guard's mark");
  }
  return seq;
}

bool is_mark(const Answer& answer) {
  return answer.state == Answer::State::stands && !answer.held.expired(answer.now);
}

// One accept: reads what stands, then tries to move the mark, until one write or answer settles it.
class Accept {
 public:
  Accept(IdempotencyStore& store, const SequenceOptions& options, KeyRef key, std::uint64_t seq)
      : store_(store), refuse_gaps_(options.refuse_gaps), key_(key), seq_(seq) {
    text_ = std::to_string(seq);
    draft_.owner = Owner::random();
    draft_.status = Status::success;
    draft_.keep = options.keep;
    draft_.result = text_;
  }

  result<SequenceOutcome> operator()() {
    Load load{key_, {}};
    store_.load({&load, 1});
    Answer seen = std::move(load.answer);
    while (true) {
      if (seen.state == Answer::State::failed) {
        if (seen.error.code != errc::unknown || ++unknown_ == kUnknownTries) return seen.error;
      } else if (seen.state == Answer::State::written) {
        return SequenceOutcome(Applied{});
      } else {
        auto settled = judge(seen);
        if (!settled) return settled.error();
        if (*settled) return **settled;
        held_ = std::move(seen);
      }
      seen = move_mark();
    }
  }

 private:
  // What the mark says; nullopt: it has to be moved.
  [[nodiscard]] result<std::optional<SequenceOutcome>> judge(const Answer& seen) const {
    using Settled = std::optional<SequenceOutcome>;
    std::uint64_t newest = 0;
    if (is_mark(seen)) {
      // An earlier try of this very call took after all.
      if (seen.held.owner == draft_.owner) return Settled(Applied{});
      const auto mark = mark_of(seen.held);
      if (!mark) return mark.error();
      newest = *mark;
      if (seq_ == newest) return Settled(Duplicate{});
      if (seq_ < newest) return Settled(Stale{newest});
    }
    if (refuse_gaps_ && seq_ != newest + 1) return Settled(Gap{newest});
    return Settled();
  }

  Answer move_mark() {
    if (held_.state != Answer::State::stands) {
      draft_.fresh = true;
      Insert insert{key_, draft_, {}};
      store_.insert({&insert, 1});
      return std::move(insert.answer);
    }
    draft_.fresh = held_.held.expired(held_.now);
    draft_.fence = draft_.fresh ? 0 : held_.held.fence;
    draft_.attempt = held_.held.attempt;
    Replace replace{key_, held_.held.version, draft_, {}};
    store_.replace({&replace, 1});
    return std::move(replace.answer);
  }

  IdempotencyStore& store_;
  bool refuse_gaps_;
  KeyRef key_;
  std::uint64_t seq_;
  std::string text_;
  Draft draft_;
  Answer held_;  // what the next write decides upon
  int unknown_ = 0;
};

}  // namespace

SequenceGuard::SequenceGuard(StorePtr store, SequenceOptions options)
    : store_(std::move(store)), options_(std::move(options)) {}

result<SequenceOutcome> SequenceGuard::accept(std::string_view stream, std::uint64_t seq) {
  const KeyRef key{options_.tenant, options_.biz_type, stream};
  if (auto checked = check_key(key); !checked) return checked.error();
  if (options_.keep.micros() <= Micros(0) || options_.keep.micros() > kDurationMax) {
    return idem::fail(errc::invalid_argument, "keep must be more than 0 and at most 100 years");
  }
  return Accept(*store_, options_, key, seq)();
}

result<std::optional<std::uint64_t>> SequenceGuard::newest(std::string_view stream) {
  using Newest = std::optional<std::uint64_t>;
  const KeyRef key{options_.tenant, options_.biz_type, stream};
  if (auto checked = check_key(key); !checked) return checked.error();
  Load load{key, {}};
  store_->load({&load, 1});
  if (load.answer.state == Answer::State::failed) return load.answer.error;
  if (!is_mark(load.answer)) return Newest();
  const auto mark = mark_of(load.answer.held);
  if (!mark) return mark.error();
  return Newest(*mark);
}

}  // namespace idem
