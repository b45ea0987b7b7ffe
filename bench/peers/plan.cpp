#include "peers/plan.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "micro/keys.hpp"

namespace idem::bench {
namespace {

constexpr std::array<std::pair<Workload, std::string_view>, 11> kNames{{
    {Workload::claim, "claim"},
    {Workload::grow, "grow"},
    {Workload::cycle, "cycle"},
    {Workload::replay, "replay"},
    {Workload::hot, "hot"},
    {Workload::same, "same"},
    {Workload::zipf, "zipf"},
    {Workload::steady, "steady"},
    {Workload::lapse, "lapse"},
    {Workload::memory, "memory"},
    {Workload::churn, "churn"},
}};

constexpr std::size_t kPrime = 2'654'435'761;

void append(Stream& stream, KeyRef key) { stream.keys.append(key.key); }

// Keys first..first+count of a block, as one piece of text.
std::string cut(const KeyBlock& keys, std::size_t first, std::size_t count) {
  std::string text;
  text.reserve(count * kKeyBytes);
  for (std::size_t i = 0; i < count; ++i) text.append(keys[first + i].key);
  return text;
}

// Each thread claims keys of its own.
void deal_out(Requests& requests, const Plan& plan, std::size_t total) {
  for (std::size_t t = 0; t < plan.threads; ++t) {
    const KeyBlock keys(1 + t, total / plan.threads);
    requests.streams[t].keys = cut(keys, 0, keys.size());
  }
}

void draw_replays(Stream& stream, const KeyBlock& keys, std::size_t count, Draw& draw) {
  stream.keys.reserve(count * kKeyBytes);
  for (std::size_t i = 0; i < count; ++i) {
    append(stream, keys[draw.below(keys.size())]);
    stream.sum += key_sum(stream.key(i));
  }
}

// Ranks drawn by inverting the distribution's sums; which key has which rank does not follow the
// order they were made in, or the popular ones would be neighbours in memory.
void draw_zipf(Stream& stream, const KeyBlock& keys, const KeyBlock& fresh, std::size_t count,
               Draw& draw) {
  std::vector<double> sums(keys.size());
  double sum = 0;
  for (std::size_t i = 0; i < keys.size(); ++i)
    sums[i] = sum += 1.0 / std::pow(static_cast<double>(i + 1), 0.99);
  std::size_t next = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const bool claim = i % 20 == 19;
    stream.is_claim.push_back(claim);
    if (claim) {
      append(stream, fresh[next++]);
      continue;
    }
    const double at = sum * static_cast<double>(draw.below(1U << 30U)) / double{1U << 30U};
    const auto rank = std::lower_bound(sums.begin(), sums.end(), at) - sums.begin();
    append(stream, keys[static_cast<std::size_t>(rank) * kPrime % keys.size()]);
    stream.sum += key_sum(stream.key(i));
  }
}

}  // namespace

std::string_view name_of(Workload workload) {
  for (const auto& [known, name] : kNames)
    if (known == workload) return name;
  return {};
}

bool workload_of(std::string_view name, Workload& workload) {
  for (const auto& [known, text] : kNames) {
    if (text != name) continue;
    workload = known;
    return true;
  }
  return false;
}

Requests::Requests(const Plan& plan) : streams(plan.threads) {
  const bool replays = plan.workload == Workload::replay || plan.workload == Workload::hot ||
                       plan.workload == Workload::zipf;
  const std::size_t each = plan.records / plan.threads;
  std::size_t claims = plan.records;
  if (plan.workload == Workload::steady) claims *= kLives;
  if (plan.workload == Workload::churn) claims *= 2;  // each again, long after it expired
  if (!replays && plan.workload != Workload::same) deal_out(*this, plan, claims);
  if (plan.workload == Workload::same) {
    const KeyBlock keys(1, plan.records);
    for (Stream& stream : streams) stream.keys = cut(keys, 0, keys.size());
  }
  if (plan.workload == Workload::lapse) {
    const KeyBlock keys(0, plan.records);
    finished = cut(keys, 0, keys.size());
  }
  if (!replays) return;
  const KeyBlock keys(0, plan.workload == Workload::hot ? 1 : plan.records);
  finished = cut(keys, 0, keys.size());
  for (std::size_t t = 0; t < plan.threads; ++t) {
    Draw draw(t + 1);
    if (plan.workload == Workload::replay) draw_replays(streams[t], keys, each * 2, draw);
    if (plan.workload == Workload::zipf)
      draw_zipf(streams[t], keys, KeyBlock(1 + t, each / 10 + 1), each * 2, draw);
    if (plan.workload == Workload::hot) {
      streams[t].keys = finished;  // asked for again and again
      streams[t].sum = key_sum(finished.data()) * kHotAsks;
    }
  }
}

}  // namespace idem::bench
