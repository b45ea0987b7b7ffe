#include "load/statistics.hpp"

#include <algorithm>
#include <boost/math/distributions/binomial.hpp>
#include <cmath>
#include <numeric>

namespace idem::bench {
namespace {

double median_of_sorted(const std::vector<double>& sorted) {
  const std::size_t n = sorted.size();
  return n % 2 == 1 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
}

// How many of the choices of `n` among n + m ranks have the U statistic u, for every u; as shares.
// Recurrence of Mann and Whitney (1947): the largest of all belongs to the one or the other sample.
std::vector<double> u_distribution(std::size_t n, std::size_t m) {
  // shares[j][u] for the current i and j of the second sample
  std::vector<std::vector<double>> shares(m + 1, std::vector<double>(n * m + 1, 0.0));
  for (auto& row : shares) row[0] = 1;  // i = 0: U is 0
  for (std::size_t i = 1; i <= n; ++i) {
    std::vector<std::vector<double>> next(m + 1, std::vector<double>(n * m + 1, 0.0));
    next[0][0] = 1;
    for (std::size_t j = 1; j <= m; ++j) {
      const double first = static_cast<double>(i) / static_cast<double>(i + j);
      for (std::size_t u = 0; u <= i * j; ++u) {
        const double from_first = u >= j ? shares[j][u - j] : 0.0;
        next[j][u] = first * from_first + (1 - first) * next[j - 1][u];
      }
    }
    shares = std::move(next);
  }
  return shares[m];
}

// Twice the ranks of the sizes, so that shared mean ranks are whole numbers too. Sorted by size.
std::vector<std::size_t> doubled_ranks(const std::vector<double>& sorted_sizes) {
  std::vector<std::size_t> ranks(sorted_sizes.size());
  for (std::size_t first = 0; first < sorted_sizes.size();) {
    std::size_t end = first;
    while (end < sorted_sizes.size() && sorted_sizes[end] == sorted_sizes[first]) ++end;
    for (std::size_t i = first; i < end; ++i) ranks[i] = first + 1 + end;
    first = end;
  }
  return ranks;
}

// The share of the 2^n choices of signs whose positive ranks sum up to at most `sum`.
double share_up_to(const std::vector<std::size_t>& ranks, std::size_t sum) {
  const std::size_t all = std::accumulate(ranks.begin(), ranks.end(), std::size_t{0});
  std::vector<double> shares(all + 1, 0.0);
  shares[0] = 1;
  for (const std::size_t rank : ranks) {
    for (std::size_t at = all + 1; at-- > 0;)
      shares[at] = (shares[at] + (at >= rank ? shares[at - rank] : 0)) / 2;
  }
  return std::accumulate(shares.begin(), shares.begin() + static_cast<std::ptrdiff_t>(sum) + 1,
                         0.0);
}

}  // namespace

Summary summarize(std::span<const double> samples) {
  Summary out;
  out.rounds = samples.size();
  if (samples.empty()) return out;
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  out.median = median_of_sorted(sorted);
  out.min = sorted.front();
  out.max = sorted.back();
  out.ci95 = median_interval(std::move(sorted));
  return out;
}

std::optional<Interval> median_interval(std::vector<double> samples) {
  const std::size_t n = samples.size();
  if (n < kRoundsForInterval) return std::nullopt;
  std::sort(samples.begin(), samples.end());
  const boost::math::binomial_distribution<double> heads(static_cast<double>(n), 0.5);
  std::size_t k = 1;
  while (k + 1 <= n / 2 && boost::math::cdf(heads, static_cast<double>(k)) <= 0.025) ++k;
  return Interval{samples[k - 1], samples[n - k]};
}

double rank_test(std::span<const double> a, std::span<const double> b) {
  if (a.empty() || b.empty()) return 1;
  double u = 0;
  for (const double x : a) {
    for (const double y : b) u += x > y ? 1 : (x == y ? 0.5 : 0);
  }
  const double most = static_cast<double>(a.size()) * static_cast<double>(b.size());
  const auto extreme = static_cast<std::size_t>(std::ceil(std::min(u, most - u)));
  const std::vector<double> shares = u_distribution(a.size(), b.size());
  double tail = 0;
  for (std::size_t i = 0; i <= extreme && i < shares.size(); ++i) tail += shares[i];
  return std::min(1.0, 2 * tail);
}

double signed_rank_test(std::span<const double> differences) {
  std::vector<double> left;
  for (const double difference : differences) {
    if (difference != 0) left.push_back(difference);
  }
  if (left.empty()) return 1;
  const auto size = [](double difference) { return std::abs(difference); };
  std::sort(left.begin(), left.end(), [&](double a, double b) { return size(a) < size(b); });
  std::vector<double> sizes(left.size());
  std::transform(left.begin(), left.end(), sizes.begin(), size);
  const std::vector<std::size_t> ranks = doubled_ranks(sizes);
  std::size_t positive = 0;
  std::size_t all = 0;
  for (std::size_t i = 0; i < left.size(); ++i) {
    all += ranks[i];
    if (left[i] > 0) positive += ranks[i];
  }
  return std::min(1.0, 2 * share_up_to(ranks, std::min(positive, all - positive)));
}

}  // namespace idem::bench
