// What no test can mount: file systems whose locks cannot be trusted.
#include <gtest/gtest.h>

#include "sqlite_doctor.hpp"

namespace idem::sqlite {
namespace {

TEST(SqliteDoctor, KnowsTheFileSystemsThatCannotBeTrusted) {
  for (const long type : {0x6969L, 0x517bL, 0xff534d42L, 0xfe534d42L, 0x01021997L, 0x65735546L}) {
    EXPECT_TRUE(file_system_of(type).network) << type;
    EXPECT_FALSE(file_system_of(type).name.empty());
  }
  // As a 32-bit system says it.
  EXPECT_TRUE(file_system_of(static_cast<int>(0xfe534d42U)).network);
  EXPECT_TRUE(file_system_of(0x01021994).in_memory) << "tmpfs";
  for (const long local : {0xef53L, 0x9123683eL, 0x58465342L, 0x794c7630L}) {
    EXPECT_FALSE(file_system_of(local).network) << local;
    EXPECT_FALSE(file_system_of(local).in_memory) << local;
  }
}

}  // namespace
}  // namespace idem::sqlite
