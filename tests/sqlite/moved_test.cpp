// A file that is moved, removed or replaced under a running process: nothing is answered from it
// any more, for what would be written there is gone with the process.
#include <gmock/gmock.h>

#include <fstream>

#include "helpers.hpp"

namespace idem {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class MovedFile : public ::testing::Test {
 protected:
  // Every verb is refused, before anything is done.
  void expect_refusal() {
    const KeyRef fresh = KeyRef{"t", "b", "fresh"};
    const Answer claimed = insert(*store_, fresh);
    EXPECT_EQ(word(claimed), "unavailable");
    EXPECT_THAT(claimed.error.message, HasSubstr("was moved, removed or replaced"));
    EXPECT_THAT(claimed.error.message, HasSubstr(directory_.file()));
    EXPECT_EQ(word(load(*store_, key_)), "unavailable");
    EXPECT_EQ(word(replace(*store_, key_, held_.version, success_draft(held_, "r"))),
              "unavailable");
    EXPECT_EQ(word(remove(*store_, key_, held_.version)), "unavailable");
    EXPECT_EQ(store_->sweep(1).error().code, errc::unavailable);
    EXPECT_EQ(store_->list({}).error().code, errc::unavailable);
    EXPECT_EQ(store_->stats().error().code, errc::unavailable);
  }

  TempDir directory_;
  StorePtr store_ = open_or_die(directory_.file());
  const KeyRef key_{"t", "b", "k"};
  const Record held_ = insert(*store_, key_).held;
};

TEST_F(MovedFile, ARemovedOneIsNotWrittenOn) {
  fs::remove(directory_.file());
  expect_refusal();
}

TEST_F(MovedFile, AMovedOneServesAgainWhereItIsAndWhenItIsBack) {
  fs::rename(directory_.file(), directory_.file("elsewhere.db"));
  expect_refusal();
  fs::rename(directory_.file("elsewhere.db"), directory_.file());
  EXPECT_EQ(word(load(*store_, key_)), "stands");
  EXPECT_EQ(word(replace(*store_, key_, held_.version, success_draft(held_, "r"))), "written");
}

TEST_F(MovedFile, AnotherStoreInItsPlaceIsNotMistakenForIt) {
  fs::rename(directory_.file(), directory_.file("old.db"));
  for (const char* part : {"-wal", "-shm"}) fs::remove(directory_.file() + part);
  const StorePtr other = open_or_die(directory_.file());
  expect_refusal();
  EXPECT_EQ(word(load(*other, key_)), "absent");
}

// What was committed is in the log, and who opens the file afterwards begins another one.
TEST_F(MovedFile, ARemovedLogIsNotWrittenOn) {
  for (const char* const part : {"-wal", "-shm"}) fs::remove(directory_.file() + part);
  expect_refusal();
}

TEST_F(MovedFile, ALogAloneOrItsIndexAloneCountsAsMuch) {
  for (const char* const part : {"-wal", "-shm"}) {
    const std::string name = directory_.file() + part;
    fs::rename(name, name + ".away");
    expect_refusal();
    fs::copy_file(name + ".away", name);
    expect_refusal();
    fs::rename(name + ".away", name);
    EXPECT_EQ(word(load(*store_, key_)), "stands");
  }
}

// The record is not in the database yet: to a second process the key would be free.
TEST_F(MovedFile, NobodyOpensAFileWhoseLogOthersHold) {
  for (const char* const part : {"-wal", "-shm"}) fs::remove(directory_.file() + part);
  SqliteOptions options;
  options.path = directory_.file();
  options.busy_timeout = milliseconds(20);
  const auto second = open_sqlite(options);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, errc::cannot_open);
  EXPECT_THAT(second.error().message, HasSubstr("-wal was moved or removed"));
  store_.reset();
  EXPECT_TRUE(open_sqlite(options)) << "nobody is left";
}

TEST_F(MovedFile, ASymbolicLinksLogLiesBesideItsTarget) {
  fs::create_symlink(directory_.file(), directory_.file("link.db"));
  const StorePtr linked = open_or_die(directory_.file("link.db"));
  EXPECT_EQ(word(load(*linked, key_)), "stands");
  fs::remove(directory_.file() + "-wal");
  EXPECT_EQ(word(load(*linked, key_)), "unavailable");
}

}  // namespace
}  // namespace idem
