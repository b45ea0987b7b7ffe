// The suite proves itself: each broken store must fail it, by name, and the healthy one must not.
#include "broken_stores.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <memory>
#include <set>
#include <string>

namespace idem::conformance {
namespace {

struct Findings {
  std::set<std::string> failed;  // "StoreContract.InsertOnAKeyThatIsThereChangesNothing"
  std::string output;
};

// Runs the suite over one store in a process of its own: a broken store may crash or hang it.
Findings run_suite(const std::string& store) {
  const std::string filter = "*/" + store + ":*/" + store + "_caller_*";
  // The simultaneous cases on the machine's clock take seconds, and seldom see more.
  const std::string command = std::string("timeout 100 ") + IDEM_BROKEN_CONFORMANCE +
                              " --gtest_brief=1 --gtest_filter='" + filter +
                              "-*Concurrency.H*' 2>&1";
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  Findings run;
  if (!pipe) return run;
  std::array<char, 4096> buffer{};
  while (std::fgets(buffer.data(), buffer.size(), pipe.get()) != nullptr) {
    const std::string line(buffer.data());
    run.output += line;
    constexpr std::string_view kMark = "[  FAILED  ] Broken/";
    if (!line.starts_with(kMark)) continue;
    const std::string name = line.substr(kMark.size());
    run.failed.insert(name.substr(0, name.find_first_of("/, \n")));
  }
  return run;
}

class BrokenStores : public ::testing::TestWithParam<BrokenStore> {};

TEST_P(BrokenStores, IsCaught) {
  const BrokenStore& store = GetParam();
  const Findings run = run_suite(store.name);
  ASSERT_NE(run.output.find(" ran. ("), std::string::npos) << run.output.substr(0, 4000);
  if (store.name == "healthy") {
    EXPECT_TRUE(run.failed.empty()) << run.output;
    return;
  }
  EXPECT_FALSE(run.failed.empty()) << store.fault << ": no case caught it";
  std::printf("caught %-24s by %3zu cases, among them %s\n", store.name.c_str(), run.failed.size(),
              run.failed.empty() ? "none" : run.failed.begin()->c_str());
}

INSTANTIATE_TEST_SUITE_P(All, BrokenStores, ::testing::ValuesIn(broken_stores()),
                         [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace idem::conformance
