// The claim inside the business transaction on MySQL: a duplicate waits on the index until the
// first commits, and then gets its result.
#include "idem/mysql_transaction.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/mysql/any_connection.hpp>
#include <boost/mysql/results.hpp>

#include "contention/mysql_client.hpp"
#include "contention/service_asker.hpp"

namespace idem::bench {
namespace {

namespace sql = boost::mysql;

constexpr int kTries = 5;
// Longer than any work of a storm: who waits must not give up before the first is done.
constexpr Duration kRowWait = std::chrono::seconds(25);

class TransactionAsker final : public Asker {
 public:
  static idem::result<std::unique_ptr<Asker>> enter(StoreUrl url, Clock& clock) {
    auto made = std::unique_ptr<TransactionAsker>(new TransactionAsker);
    const auto database = mysql_options(url);
    if (!database) return database.error();
    sql::error_code code;
    sql::diagnostics said;
    made->connection_.connect(mysql_connect_params(*database), code, said);
    if (code) return fail(errc::unavailable, url.redacted() + ": " + code.message());
    MysqlTransactionOptions options;
    options.row_wait = kRowWait;
    options.clock = &clock;
    auto store = mysql_in_transaction(made->connection_, options);
    if (!store) return store.error();
    made->inside_ = std::make_unique<ServiceAsker>(*store, clock);
    return made;
  }
  ~TransactionAsker() override { walk_away(); }

  Heard claim(const Request& request) override {
    for (int tries = 0; tries < kTries; ++tries) {
      if (!run("START TRANSACTION")) return Heard::failed;
      const Heard heard = inside_->claim(request);
      costs_.add(inside_->take_costs());
      open_ = heard == Heard::won;
      if (open_) return heard;
      result_ = inside_->result();
      trouble_ = inside_->trouble();
      const bool ended = run(heard == Heard::failed ? "ROLLBACK" : "COMMIT");
      if (heard != Heard::failed && ended) return heard;
      ++costs_.retries;  // undone by a deadlock or a wait: the whole unit again
    }
    return Heard::failed;
  }

  bool complete(std::string_view result) override {
    const bool taken = inside_->complete(result);
    costs_.add(inside_->take_costs());
    open_ = false;
    return run(taken ? "COMMIT" : "ROLLBACK") && taken;
  }

  void walk_away() override {
    if (!open_) return;
    inside_->walk_away();
    open_ = false;
    (void)run("COMMIT");
  }

 private:
  TransactionAsker() = default;

  bool run(const char* statement) {
    ++costs_.trips;
    sql::results answer;
    sql::error_code code;
    sql::diagnostics said;
    connection_.execute(statement, answer, code, said);
    if (code) trouble_ = code.message();
    return !code;
  }

  boost::asio::io_context loop_;
  sql::any_connection connection_{loop_};  // goes after the store that borrows it
  std::unique_ptr<ServiceAsker> inside_;
  bool open_ = false;
};

}  // namespace

std::vector<Contender> mysql_transaction(const Place& place, Clock& clock) {
  const auto url = mysql_url(place);
  if (!url) return {};
  Contender inside;
  inside.name = place.name + " in transaction";
  inside.how = "START TRANSACTION, claim, business, complete, COMMIT on the caller's connection";
  inside.durability = place.fixture.store->capabilities().durability;
  inside.enter = [url = *url, &clock] { return TransactionAsker::enter(url, clock); };
  inside.tidy = store_contender(place, clock).tidy;
  return {std::move(inside)};
}

}  // namespace idem::bench
