// The claim inside the business transaction: BEGIN IMMEDIATE, claim, business, complete, COMMIT. A
// duplicate waits for the lock until the first commits, and then gets its result.
#include "contention/counting_store.hpp"
#include "contention/service_asker.hpp"
#include "contention/sqlite_session.hpp"
#include "idem/sqlite_store.hpp"

namespace idem::bench {
namespace {

class TransactionAsker final : public Asker {
 public:
  TransactionAsker(std::unique_ptr<SqliteSession> session, const StorePtr& store, Clock& clock)
      : session_(std::move(session)), inside_(store, clock) {}
  ~TransactionAsker() override { walk_away(); }

  Heard claim(const Request& request) override {
    const std::uint64_t waits = session_->lock_waits();
    const bool begun = run("BEGIN IMMEDIATE");
    costs_.lock_waits += session_->lock_waits() - waits;
    if (!begun) return Heard::failed;
    const Heard heard = inside_.claim(request);
    costs_.add(inside_.take_costs());
    if (heard == Heard::won) return heard;
    result_ = inside_.result();
    trouble_ = inside_.trouble();
    return run("COMMIT") ? heard : Heard::failed;
  }

  bool complete(std::string_view result) override {
    const bool taken = inside_.complete(result);
    costs_.add(inside_.take_costs());
    return run("COMMIT") && taken;
  }

  void walk_away() override {
    inside_.walk_away();
    if (sqlite3_get_autocommit(session_->handle()) == 0) run("COMMIT");
  }

 private:
  bool run(const char* sql) {
    ++costs_.trips;
    const auto done = session_->execute(sql);
    if (!done) trouble_ = done.error().message;
    return done.has_value();
  }

  std::unique_ptr<SqliteSession> session_;  // goes last
  ServiceAsker inside_;
};

}  // namespace

std::vector<Contender> sqlite_transaction(const Place& place, Clock& clock) {
  const std::string path = sqlite_file(place);
  if (path.empty()) return {};
  Contender inside;
  inside.name = place.name + " in transaction";
  inside.how = "BEGIN IMMEDIATE, claim, business, complete, COMMIT on the caller's connection";
  inside.durability = place.fixture.store->capabilities().durability;
  inside.enter = [path, synchronous = synchronous_of(place),
                  &clock]() -> result<std::unique_ptr<Asker>> {
    auto session = SqliteSession::open(path, synchronous, clock);
    if (!session) return session.error();
    auto store = sqlite_in_transaction((*session)->handle(), &clock);
    if (!store) return store.error();
    return std::make_unique<TransactionAsker>(std::move(*session), *store, clock);
  };
  inside.tidy = store_contender(place, clock).tidy;
  return {std::move(inside)};
}

}  // namespace idem::bench
