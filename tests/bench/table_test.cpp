#include "load/table.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "load/units.hpp"

namespace idem::bench {
namespace {

std::size_t widest(const std::string& text) {
  std::istringstream lines(text);
  std::size_t most = 0;
  for (std::string line; std::getline(lines, line);) most = std::max(most, line.size());
  return most;
}

Table sample() {
  Table table({{"STORE", false, 0},
               {"RATE", true, 0},
               {"CI", false, 2},
               {"P99", true, 1},
               {"EMPTY", true, 3}});
  table.add({"memory", "1.20M", "[1.10M, 1.30M]", "850ns", "-"});
  table.add({"sqlite", "9.8k", "[9.1k, 10.4k]", "3.10ms", ""});
  return table;
}

TEST(Table, AlignsAndLeavesOutWhatIsEmpty) {
  EXPECT_EQ(sample().text(80),
            "STORE    RATE  CI                 P99\n"
            "memory  1.20M  [1.10M, 1.30M]   850ns\n"
            "sqlite   9.8k  [9.1k, 10.4k]   3.10ms\n");
}

TEST(Table, DropsColumnsInTheStatedOrderAndNeverWraps) {
  EXPECT_EQ(sample().text(36).find("CI"), std::string::npos);
  EXPECT_NE(sample().text(36).find("P99"), std::string::npos);
  EXPECT_EQ(sample().text(20).find("P99"), std::string::npos);
  for (std::size_t width = 8; width < 60; ++width)
    EXPECT_LE(widest(sample().text(width)), width) << width;
}

TEST(Wrapped, KeepsTheWidthAndIndentsWhatFollows) {
  EXPECT_EQ(wrapped("VOID     a bb ccc dddd", 14, 4), "VOID     a bb\n    ccc dddd");
  for (std::size_t width = 20; width < 50; ++width) {
    const std::string text = wrapped("a word and " + std::string(70, 'x') + " another", width, 4);
    EXPECT_LE(widest(text), width);
  }
}

TEST(Units, ThreeDigitsWithPrefixOrUnit) {
  EXPECT_EQ(si(0), "0");
  EXPECT_EQ(si(7), "7.00");
  EXPECT_EQ(si(41'234), "41.2k");
  EXPECT_EQ(si(999.4), "999");
  EXPECT_EQ(si(999.6), "1.00k");
  EXPECT_EQ(si(2'900'000), "2.90M");
  EXPECT_EQ(duration_text(std::nullopt), "-");
  EXPECT_EQ(duration_text(412), "412ns");
  EXPECT_EQ(duration_text(1250), "1.25us");
  EXPECT_EQ(duration_text(98'700'000), "98.7ms");
  EXPECT_EQ(duration_text(72'000'000'000), "72.0s");
  EXPECT_EQ(percent(0.0123), "1.2%");
}

}  // namespace
}  // namespace idem::bench
