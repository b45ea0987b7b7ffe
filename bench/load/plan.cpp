#include "load/plan.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "idem/fingerprint.hpp"

namespace idem::bench {
namespace {

// The standard's distributions differ between libraries; its generators do not.
class Dice {
 public:
  explicit Dice(std::uint64_t seed) : bits_(seed) {}
  double unit() { return static_cast<double>(bits_() >> 11U) * 0x1p-53; }
  std::uint32_t below(std::uint32_t n) {
    return static_cast<std::uint32_t>(unit() * static_cast<double>(n));
  }
  bool happens(double share) { return share > 0 && unit() < share; }

 private:
  std::mt19937_64 bits_;
};

// Key i with a probability proportional to 1 / (i + 1)^skew.
class Zipf {
 public:
  Zipf(std::uint32_t count, double skew) : below_(count) {
    double sum = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      sum += std::pow(static_cast<double>(i) + 1, -skew);
      below_[i] = sum;
    }
  }
  std::uint32_t draw(Dice& dice) const {
    const double at = dice.unit() * below_.back();
    const auto found = std::upper_bound(below_.begin(), below_.end(), at);
    return static_cast<std::uint32_t>(
        std::min<std::ptrdiff_t>(found - below_.begin(), std::ssize(below_) - 1));
  }

 private:
  std::vector<double> below_;
};

}  // namespace

Plan make_plan(const Workload& workload) {
  Plan plan;
  plan.operations.reserve(workload.operations);
  const KeyChoice& keys = workload.keys;
  const Zipf zipf(keys.kind == KeyKind::zipf ? keys.count : 0, keys.skew);
  Dice dice(workload.seed);
  std::uint32_t fresh = 0;
  for (std::uint32_t i = 0; i < workload.operations; ++i) {
    Operation next;
    if (i > 0 && dice.happens(workload.duplicates)) {
      const std::uint32_t back = 1 + dice.below(std::min(i, kDuplicateWindow));
      next.key = plan.operations[i - back].key;
    } else if (keys.kind == KeyKind::unique) {
      next.key = fresh++;
    } else if (keys.kind == KeyKind::hot) {
      next.key = dice.below(keys.count);
    } else {
      next.key = zipf.draw(dice);
    }
    next.crash = dice.happens(workload.crashes);
    plan.operations.push_back(next);
  }
  plan.keys = keys.kind == KeyKind::unique ? fresh : keys.count;
  return plan;
}

std::string plan_hash(const Plan& plan) {
  std::string bytes;
  bytes.reserve(plan.operations.size() * 5);
  for (const Operation& operation : plan.operations) {
    for (unsigned shift = 0; shift < 32; shift += 8)
      bytes.push_back(static_cast<char>((operation.key >> shift) & 0xffU));
    bytes.push_back(operation.crash ? '\1' : '\0');
  }
  return Fingerprint::of_bytes(bytes).hex();
}

}  // namespace idem::bench
