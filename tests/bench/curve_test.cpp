#include "capacity/curve.hpp"

#include <gtest/gtest.h>

#include "load/slo.hpp"

namespace idem::bench {
namespace {

CurvePoint point(double offered, Nanos p99, bool reached = true, bool within = true) {
  CurvePoint made;
  made.offered = offered;
  made.reached = reached;
  made.within = within;
  for (int i = 0; i < 100; ++i) made.claims.record(p99);
  return made;
}

TEST(Curve, KneeIsTheLastRateBeforeLatencyTriples) {
  EXPECT_EQ(knee({point(100, 1000), point(200, 1500), point(300, 2900), point(400, 3100)}), 300);
  EXPECT_EQ(knee({point(100, 1000), point(200, 9000), point(300, 1000)}), 100);
}

TEST(Curve, ARateThatIsNotReachedBendsItToo) {
  EXPECT_EQ(knee({point(100, 1000), point(200, 1000, false)}), 100);
  EXPECT_EQ(knee({point(100, 1000, false)}), std::nullopt);
  EXPECT_EQ(knee({}), std::nullopt);
}

TEST(Curve, HighestWithinNeedsAllLowerOnesWithin) {
  EXPECT_EQ(highest_within({point(1, 1), point(2, 1), point(3, 1, true, false), point(4, 1)}), 2);
  EXPECT_EQ(highest_within({point(1, 1, true, false)}), std::nullopt);
}

TEST(Curve, NextToTryHalvesTheGapUntilThereIsNone) {
  EXPECT_EQ(next_to_try({point(100, 1), point(200, 1, true, false)}), 150);
  EXPECT_EQ(next_to_try({point(100, 1, true, false)}), 50);
  EXPECT_EQ(next_to_try({point(100, 1), point(200, 1)}), std::nullopt);
}

TEST(Slo, ReadsQuantileAndLimitAndRefusesTheRest) {
  const auto slo = parse_slo("p99.9<20ms");
  ASSERT_TRUE(slo);
  EXPECT_DOUBLE_EQ(slo->quantile, 0.999);
  EXPECT_EQ(slo->limit, 20'000'000);
  for (const char* bad : {"", "p99", "p99<", "p99<5", "99<5ms", "p0<5ms", "p100<5ms", "pxx<5ms",
                          "p99<-5ms", "p99>5ms"})
    EXPECT_EQ(parse_slo(bad).error().code, errc::invalid_argument) << bad;
}

TEST(Slo, HoldsBelowItsLimitOnly) {
  const Slo slo{0.5, 1000, "p50<1us"};
  Histogram claims;
  EXPECT_FALSE(holds(slo, claims));
  claims.record(500);
  EXPECT_TRUE(holds(slo, claims));
  claims.record(5000);
  claims.record(5000);
  EXPECT_FALSE(holds(slo, claims));
}

}  // namespace
}  // namespace idem::bench
