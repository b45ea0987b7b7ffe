// A connection cut after any byte of any verb (cut_trial.hpp), on both layouts.
//
// The normal run takes a sample of the bytes, IDEM_NIGHTLY=1 every 13th (over 2,000 cuts of each
// layout, four minutes in all), IDEM_CUT_STRIDE=N every Nth: each test alone, that takes long.
#include <tuple>

#include "idem/testing/cut_trial.hpp"
#include "support.hpp"

namespace idem::mysql_test {
namespace {

using testing::CutProxy;
using testing::CutTrial;
using testing::CutVerb;
using Layout = MysqlOptions::Layout;

std::string name_of(Layout layout) {
  return layout == Layout::clustered ? "clustered" : "articles";
}

class MysqlCuts : public ::testing::TestWithParam<std::tuple<Layout, CutVerb>> {
 protected:
  static Layout layout() { return std::get<0>(GetParam()); }

  MysqlOptions through_proxy() const {
    MysqlOptions options = database_.options(layout());
    options.socket.clear();
    options.port = proxy_.port();
    options.connections = 1;
    options.timeout = 60ms;
    return options;
  }

  Database database_;
  CutProxy proxy_{server().port()};
};

TEST_P(MysqlCuts, ACutAfterAnyByteIsResolvedByTheSameToken) {
  const auto stride = testing::cut_stride(211, 13);
  CutTrial trial(proxy_, open(through_proxy()), open(database_.options(layout())), 150ms);
  trial.cut_all(std::get<1>(GetParam()), stride, name_of(layout()));
  // There are seven ways to be cut, and 200 bytes at least on each of them, taken together.
  EXPECT_GT(trial.cuts(), 7 * 200 / static_cast<int>(stride));
}

INSTANTIATE_TEST_SUITE_P(Each, MysqlCuts,
                         ::testing::Combine(::testing::Values(Layout::clustered, Layout::articles),
                                            ::testing::ValuesIn(testing::kCutVerbs)),
                         [](const auto& with) {
                           return name_of(std::get<0>(with.param)) + "_" +
                                  to_string(std::get<1>(with.param));
                         });

}  // namespace
}  // namespace idem::mysql_test
