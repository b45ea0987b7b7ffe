#include "idem/error.hpp"

#include <gtest/gtest.h>

namespace idem {
namespace {

TEST(Error, EveryCodeHasItsOwnWordAndCategory) {
  for (int code = 1; code <= static_cast<int>(errc::internal); ++code) {
    const auto value = make_error_code(static_cast<errc>(code));
    EXPECT_STREQ(value.category().name(), "idem");
    EXPECT_NE(value.message(), "no_error");
  }
}

TEST(Error, ValueOfAnErrorThrowsItsCodeAndMessage) {
  const result<int> broken = fail(errc::capacity, "full");
  try {
    (void)broken.value();
    FAIL() << "did not throw";
  } catch (const Exception& error) {
    EXPECT_EQ(error.code(), errc::capacity);
    EXPECT_STREQ(error.what(), "capacity: full");
  }
}

}  // namespace
}  // namespace idem
