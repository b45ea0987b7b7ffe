// Several processes on one file (H23, H27), and the child of a fork.
#include <sys/wait.h>
#include <unistd.h>

#include <set>
#include <sstream>
#include <vector>

#include "helpers.hpp"
#include "idem/clock.hpp"
#include "probe.hpp"

namespace idem {
namespace {

// How long `run` takes on the machine's clock.
template <class Run>
Micros duration_of(Run run) {
  const Time start = system_clock().now();
  run();
  return system_clock().now() - start;
}

// H23 (1): another process writes for half a second; the claim waits for it, and no longer.
TEST(SqliteProcesses, AClaimWaitsForAnotherProcessesTransaction) {
  TempDir directory;
  const StorePtr store = open_or_die(directory.file());
  Probe other({"hold", directory.file(), "500"});
  ASSERT_EQ(other.line(), "held");
  const Micros waited = duration_of([&] { EXPECT_EQ(word(insert(*store, Key("k"))), "written"); });
  EXPECT_EQ(other.line(), "done");
  EXPECT_GT(waited, milliseconds(300));
  EXPECT_LT(waited, milliseconds(900));
}

// H23 (3): over the limit it is busy: never "in progress", never "duplicate".
TEST(SqliteProcesses, OverTheBusyTimeoutTheAnswerIsBusy) {
  TempDir directory;
  const StorePtr store = open_or_die(directory.file(), nullptr, milliseconds(300));
  Probe other({"hold", directory.file(), "5000"});
  ASSERT_EQ(other.line(), "held");
  const Key key("k");
  Answer answer;
  const Micros waited = duration_of([&] { answer = insert(*store, key); });
  EXPECT_EQ(word(answer), "busy");
  EXPECT_NE(answer.error.message.find(directory.file()), std::string::npos);
  EXPECT_GE(waited, milliseconds(300));
  EXPECT_LE(waited, milliseconds(600));
  // Nobody in line waits for longer than its own limit, however many stand before it.
  std::vector<std::thread> threads;
  std::atomic<int> late{0};
  std::atomic<int> busy{0};
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      const Key mine("k" + std::to_string(t));
      const Micros took = duration_of([&] {
        if (word(insert(*store, mine)) == "busy") ++busy;
      });
      if (took > milliseconds(600)) ++late;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(busy, 8);
  EXPECT_EQ(late, 0);
  EXPECT_EQ(word(load(*store, key)), "absent") << "readers do not wait for a writer";
  other.kill();
  EXPECT_EQ(word(insert(*store, key)), "written") << "busy means: surely not applied";
}

// H23 (2): a write of another process between our read and our write.
TEST(SqliteProcesses, AWriteInBetweenIsSeenNotLockedOut) {
  TempDir directory;
  const StorePtr here = open_or_die(directory.file());
  const StorePtr there = open_or_die(directory.file());
  const Key key("k");
  const Answer first = insert(*here, key);
  const Answer seen = load(*here, key);
  const Answer theirs = replace(*there, key, first.held.version, claim_draft());
  ASSERT_EQ(word(theirs), "written");
  const Answer ours = replace(*here, key, seen.held.version, claim_draft());
  EXPECT_EQ(word(ours), "stands");
  EXPECT_EQ(ours.held, theirs.held);
}

// H23 (4), H01 over processes: two of them, eight threads each, every key claimed exactly once.
TEST(SqliteProcesses, OverTwoProcessesEachKeyIsClaimedOnce) {
  constexpr int kKeys = 1000;
  TempDir directory;
  const StorePtr store = open_or_die(directory.file());
  const std::vector<std::string> words = {"claim", directory.file(), "8", std::to_string(kKeys)};
  Probe one(words);
  Probe two(words);
  int total_written = 0;
  for (Probe* probe : {&one, &two}) {
    std::istringstream line(probe->line());
    std::string label;
    int written = -1;
    int stands = -1;
    int failed = -1;
    line >> label >> written >> label >> stands >> label >> failed;
    EXPECT_EQ(failed, 0);
    EXPECT_EQ(written + stands, 8 * kKeys);
    total_written += written;
  }
  EXPECT_EQ(total_written, kKeys);
  EXPECT_EQ(store->stats()->processing, static_cast<std::uint64_t>(kKeys));
}

// Two processes make the same new file at the same moment.
TEST(SqliteProcesses, SeveralOpenTheSameNewFileAtOnce) {
  for (int round = 0; round < 5; ++round) {
    TempDir directory;
    std::vector<std::unique_ptr<Probe>> probes;
    for (int i = 0; i < 4; ++i)
      probes.push_back(std::make_unique<Probe>(std::vector<std::string>{"open", directory.file()}));
    for (auto& probe : probes) EXPECT_EQ(probe->line(), "ok power");
  }
}

// H27: what was acknowledged is still there after a kill, and the file is whole.
TEST(SqliteProcesses, AKilledProcessLosesNothingItAcknowledged) {
  TempDir directory;
  std::vector<std::string> acknowledged;
  for (int round = 0; round < 20; ++round) {
    Probe probe({"loop", directory.file(), std::to_string(round) + "-"});
    for (int i = 0; i < 20 + round; ++i) acknowledged.push_back(probe.line());
    ASSERT_NE(acknowledged.back(), "");
    probe.kill();
    for (std::string key = probe.line(); !key.empty(); key = probe.line())
      acknowledged.push_back(key);
  }
  const StorePtr store = open_or_die(directory.file());
  EXPECT_EQ(store->capabilities().durability, Durability::power);
  for (const std::string& key : acknowledged) {
    const Answer answer = load(*store, Key(key));
    ASSERT_EQ(word(answer), "stands") << key;
    ASSERT_EQ(answer.held.status, Status::success) << key;
    ASSERT_EQ(answer.held.result, "result of " + key);
  }
  RawConnection raw(directory.file());
  EXPECT_EQ(raw.text("PRAGMA integrity_check"), "ok");
}

// SQLite's handles do not survive a fork: a child that used them would destroy the file.
TEST(SqliteProcesses, AForkedChildIsRefused) {
  TempDir directory;
  StorePtr store = open_or_die(directory.file());
  insert(*store, Key("k"));
  const pid_t child = fork();
  if (child == 0) {
    int wrong = 0;
    if (word(insert(*store, Key("child"))) != "wrong_process") wrong |= 1;
    if (word(load(*store, Key("k"))) != "wrong_process") wrong |= 2;
    if (store->sweep(1).error().code != errc::wrong_process) wrong |= 4;
    if (store->list({}).error().code != errc::wrong_process) wrong |= 8;
    store.reset();
    _exit(wrong);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(word(insert(*store, Key("parent"))), "written");
  EXPECT_EQ(word(load(*store, Key("child"))), "absent");
}

}  // namespace
}  // namespace idem
