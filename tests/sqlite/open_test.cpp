// H25: what is wrong with a place is said at open, by name, and nothing is changed.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "helpers.hpp"
#include "probe.hpp"

namespace idem {
namespace {

using testing::HasSubstr;

Error error_of(const std::string& path) {
  SqliteOptions options;
  options.path = path;
  auto store = open_sqlite(options);
  return store ? Error{} : store.error();
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(SqliteOpen, AMissingDirectoryIsNamed) {
  TempDir directory;
  const Error error = error_of(directory.file("no/where/t.db"));
  EXPECT_EQ(error.code, errc::cannot_open);
  EXPECT_THAT(error.message, HasSubstr("there is no directory " + directory.path() + "/no/where"));
}

TEST(SqliteOpen, ADirectoryIsNoDatabase) {
  TempDir directory;
  const Error error = error_of(directory.path());
  EXPECT_EQ(error.code, errc::cannot_open);
  EXPECT_THAT(error.message, HasSubstr(directory.path() + " is a directory"));
}

TEST(SqliteOpen, AnotherKindOfFileIsLeftAsItIs) {
  TempDir directory;
  const std::string text(5'000, 'x');
  std::ofstream(directory.file("notes.txt")) << text;
  const Error error = error_of(directory.file("notes.txt"));
  EXPECT_EQ(error.code, errc::cannot_open);
  EXPECT_THAT(error.message, HasSubstr("file is not a database"));
  EXPECT_THAT(error.message, HasSubstr(directory.file("notes.txt")));
  EXPECT_EQ(bytes_of(directory.file("notes.txt")), text);
}

// A file system without blocks of its own is not a full one.
TEST(SqliteOpen, AFileSystemThatHoldsNoFilesIsNotFull) {
  const Error error = error_of("/proc/t.db");
  EXPECT_EQ(error.code, errc::cannot_open);
  EXPECT_THAT(error.message, testing::Not(HasSubstr("no space")));
}

TEST(SqliteOpen, RelativePathsAreNamedInFull) {
  const Error error = error_of("no-such-directory/t.db");
  EXPECT_EQ(error.code, errc::cannot_open);
  EXPECT_THAT(error.message, HasSubstr(std::filesystem::current_path().string()));
}

// Root may write everywhere: only another user shows this.
TEST(SqliteOpen, PlacesThatCannotBeWrittenAreReadOnly) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to become another user";
  TempDir directory;
  namespace fs = std::filesystem;
  const auto as_nobody = [](const std::string& path) {
    return Probe({"open", path, "65534"}).line();
  };
  fs::permissions(directory.path(), fs::perms(0777));
  { open_or_die(directory.file("made.db")); }
  EXPECT_THAT(as_nobody(directory.file("made.db")), HasSubstr("read_only"));  // 0644 of root's
  fs::permissions(directory.file("made.db"), fs::perms(0666));
  EXPECT_EQ(as_nobody(directory.file("made.db")), "ok power");
  fs::permissions(directory.file("made.db"), fs::perms(0600));
  EXPECT_THAT(as_nobody(directory.file("made.db")), HasSubstr("denied"));
  fs::permissions(directory.file("made.db"), fs::perms(0666));
  fs::permissions(directory.path(), fs::perms(0555));
  EXPECT_THAT(as_nobody(directory.file("made.db")), HasSubstr("read_only directory"));
  EXPECT_THAT(as_nobody(directory.file("new.db")), HasSubstr("read_only directory"));
  EXPECT_FALSE(fs::exists(directory.file("new.db")));
}

// A damaged page is an error of its own, not an absent record that would run the business again.
TEST(SqliteOpen, ADamagedFileIsCorruptNotEmpty) {
  TempDir directory;
  {
    const StorePtr store = open_or_die(directory.file());
    std::vector<Insert> ops;
    std::vector<Key> keys;
    for (int i = 0; i < 2'000; ++i) keys.emplace_back("key-" + std::to_string(i));
    for (const Key& key : keys) ops.push_back({key, claim_draft(), {}});
    store->insert(ops);
  }
  std::fstream file(directory.file(), std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(0, std::ios::end);
  const auto size = static_cast<std::streamoff>(file.tellg());
  for (std::streamoff page = 8 * 4096; page < size; page += 4096) {
    file.seekp(page);
    file << std::string(512, '\x5a');
  }
  file.close();
  const std::string before = bytes_of(directory.file());
  int corrupt = 0;
  {
    const StorePtr store = open_or_die(directory.file());
    for (int i = 0; i < 2'000; i += 50) {
      const Answer answer = load(*store, Key("key-" + std::to_string(i)));
      ASSERT_NE(word(answer), "absent");
      if (word(answer) == "corrupt") ++corrupt;
      ASSERT_NE(word(insert(*store, Key("key-" + std::to_string(i)))), "written");
    }
  }
  EXPECT_GT(corrupt, 0);
  EXPECT_EQ(bytes_of(directory.file()), before) << "a damaged file is left as it is";
}

TEST(SqliteOpen, AResultThatWasChangedIsCorrupt) {
  TempDir directory;
  const StorePtr store = open_or_die(directory.file());
  const Key key("pay-1");
  const Answer claimed = insert(*store, key);
  replace(*store, key, claimed.held.version, success_draft(claimed.held, "paid 100"));
  RawConnection raw(directory.file());
  ASSERT_EQ(raw.run("UPDATE idempotent_record SET result_json = CAST('paid 900' AS BLOB)"),
            SQLITE_OK);
  const Answer loaded = load(*store, key);
  EXPECT_EQ(word(loaded), "corrupt");
  EXPECT_THAT(loaded.error.message, HasSubstr("pay-1"));
  EXPECT_EQ(word(insert(*store, key)), "corrupt");
  ASSERT_EQ(raw.run("UPDATE idempotent_record SET result_json = CAST('paid 100' AS BLOB), "
                    "request_hash = 'short'"),
            SQLITE_OK);
  EXPECT_EQ(word(load(*store, key)), "corrupt");
}

TEST(SqliteUrl, PathsAreRelativeOrAbsolute) {
  TempDir directory;
  const Backend backend = sqlite_backend();
  const auto open = [&](const std::string& text) -> Error {
    auto url = StoreUrl::parse(text);
    if (!url) return url.error();
    auto store = backend.open(*url, {});
    return store ? Error{} : store.error();
  };
  std::filesystem::current_path(directory.path());
  EXPECT_EQ(open("sqlite:a.db").message, "");
  EXPECT_EQ(open("sqlite:///b.db").message, "");
  EXPECT_EQ(open("sqlite:///" + directory.path() + "/c%20d.db").message, "");
  EXPECT_EQ(open("sqlite::memory:").message, "");
  EXPECT_EQ(open("sqlite:e.db?synchronous=normal&busy_timeout=500ms").message, "");
  for (const char* name : {"a.db", "b.db", "c d.db", "e.db"})
    EXPECT_TRUE(std::filesystem::exists(directory.file(name))) << name;
  EXPECT_FALSE(std::filesystem::exists(directory.file(":memory:")));
  for (const char* wrong : {"sqlite:", "sqlite:///", "sqlite://host/a.db", "sqlite:a.db?sync=full",
                            "sqlite:a.db?synchronous=off", "sqlite:a.db?busy_timeout=5"})
    EXPECT_EQ(open(wrong).code, errc::invalid_argument) << wrong;
  std::filesystem::current_path("/");
}

TEST(SqliteFixture, ItsDirectoryGoesWithItsOwner) {
  const Backend backend = sqlite_backend();
  for (const std::string& variant : backend.variants) {
    auto fixture = backend.fixture(variant, {});
    ASSERT_TRUE(fixture) << fixture.error().message;
    EXPECT_EQ(word(insert(*fixture->store, Key("k"))), "written");
    if (!fixture->store->capabilities().multi_process) continue;
    auto again = backend.open(*StoreUrl::parse(fixture->url), {});
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(word(load(**again, Key("k"))), "stands");
    const std::string path = fixture->url.substr(std::string("sqlite:///").size());
    EXPECT_TRUE(std::filesystem::exists(path));
    again->reset();
    fixture->store.reset();
    fixture->owner.reset();
    EXPECT_FALSE(std::filesystem::exists(std::filesystem::path(path).parent_path()));
  }
  EXPECT_EQ(backend.fixture("tape", {}).error().code, errc::invalid_argument);
}

}  // namespace
}  // namespace idem
