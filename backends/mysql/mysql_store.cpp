#include "idem/mysql_store.hpp"

#include <unistd.h>

#include <exception>
#include <string>
#include <vector>

#include "admin.hpp"
#include "idem/combiner.hpp"
#include "pool.hpp"
#include "schema.hpp"
#include "work.hpp"

namespace idem {
namespace {

using mysql::Budget;
using mysql::Fault;
using mysql::Pool;
using mysql::Session;
using mysql::Work;

struct Job final : CombinerJob {
  enum class Kind { insert, replace, load, remove };
  Job(Kind what, void* first, std::size_t n) : kind(what), ops(first), count(n) {}
  Kind kind;
  void* ops;
  std::size_t count;

  template <class Op>
  void append_to(std::vector<Op*>& all) const {
    for (std::size_t i = 0; i < count; ++i) all.push_back(static_cast<Op*>(ops) + i);
  }
};

class MysqlStore final : public IdempotencyStore {
 public:
  MysqlStore(std::unique_ptr<Pool> pool, Capabilities capabilities)
      : pool_(std::move(pool)),
        options_(pool_->options()),
        clock_(options_.clock != nullptr ? *options_.clock : system_clock()),
        capabilities_(std::move(capabilities)),
        combiner_({options_.connections, 256},
                  [this](std::size_t, std::span<CombinerJob* const> jobs) { execute(jobs); }) {}

  void insert(std::span<Insert> ops) override { run(Job::Kind::insert, ops); }
  void replace(std::span<Replace> ops) override { run(Job::Kind::replace, ops); }
  void load(std::span<Load> ops) override { run(Job::Kind::load, ops); }
  void remove(std::span<Remove> ops) override { run(Job::Kind::remove, ops); }

  result<std::uint64_t> sweep(std::size_t limit) override {
    return administer<std::uint64_t>([&](const Work& work) { return mysql::sweep(work, limit); });
  }
  result<Page> list(const ListQuery& query) override {
    return administer<Page>([&](const Work& work) { return mysql::list(work, query); });
  }
  result<StoreStats> stats() override {
    return administer<StoreStats>([](const Work& work) { return mysql::stats(work); });
  }

  [[nodiscard]] const Capabilities& capabilities() const noexcept override { return capabilities_; }
  bool watch(KeyRef, std::function<void()>) override { return false; }

 private:
  [[nodiscard]] Work work_on(Session& session, const Budget& budget) {
    return {session,
            options_.table,
            shared_,
            budget,
            mysql::TimeSource::of(clock_),
            capabilities_.result_bytes_max};
  }

  template <class Op>
  void run(Job::Kind kind, std::span<Op> ops) {
    if (ops.empty()) return;
    if (::getpid() != process_) {
      for (Op& op : ops) mysql::answer_failed(op.answer, wrong_process());
      return;
    }
    Job job(kind, ops.data(), ops.size());
    combiner_.run(job);
  }

  // One lane's batch: the jobs of many callers, by kind.
  void execute(std::span<CombinerJob* const> jobs) {
    std::vector<Insert*> inserts;
    std::vector<Replace*> replaces;
    std::vector<Load*> loads;
    std::vector<Remove*> removes;
    for (const CombinerJob* base : jobs) {
      const auto& job = static_cast<const Job&>(*base);
      switch (job.kind) {
        case Job::Kind::insert:
          job.append_to(inserts);
          break;
        case Job::Kind::replace:
          job.append_to(replaces);
          break;
        case Job::Kind::load:
          job.append_to(loads);
          break;
        case Job::Kind::remove:
          job.append_to(removes);
          break;
      }
    }
    perform(std::move(loads), mysql::load, true);
    perform(std::move(inserts), mysql::insert, false);
    perform(std::move(replaces), mysql::replace, false);
    perform(std::move(removes), mysql::remove, false);
  }

  // Answers every operation. `reads`: nothing is ever applied, so a broken connection is no doubt.
  // What was surely not sent, or only reads, is tried once more on another connection.
  template <class Op>
  void perform(std::vector<Op*> ops, Fault (*operation)(const Work&, std::span<Op* const>),
               bool reads) {
    if (ops.empty()) return;
    const Budget budget(options_.timeout);
    for (Op* op : ops) mysql::answer_later(op->answer);
    Fault fault;
    for (int tries = 0; tries < 2; ++tries) {
      auto session = pool_->take(budget);
      if (!session) {
        fault = {Fault::Kind::refused, false, false, session.error()};
        break;
      }
      fault = guarded(**session, [&] { return operation(work_on(**session, budget), ops); });
      pool_->give_back(std::move(*session));
      std::erase_if(ops, [](const Op* op) { return !mysql::unanswered(op->answer); });
      if (ops.empty() || !(fault.unsent || (reads && fault.kind == Fault::Kind::broken))) break;
    }
    if (ops.empty()) return;
    if (reads) fault = mysql::not_applied(std::move(fault));
    if (fault.error.code == errc{}) fault.error = fail(errc::internal, "no answer was given");
    for (Op* op : ops) mysql::answer_failed(op->answer, fault.error);
  }

  // No exception crosses the contract; after one the connection's state is anybody's guess.
  template <class Step>
  static Fault guarded(Session& session, Step step) {
    std::string what = "unknown exception";
    try {
      return step();
    } catch (const std::exception& error) {
      what = error.what();
    } catch (...) {  // NOLINT: told below
    }
    session.discard();
    return {Fault::Kind::broken, true, false, fail(errc::unknown, "statement: " + what)};
  }

  template <class T, class Step>
  result<T> administer(Step step) {
    if (::getpid() != process_) return wrong_process();
    const Budget budget(options_.timeout);
    auto session = pool_->take(budget);
    if (!session) return session.error();
    result<T> answer = fail(errc::internal, "not asked");
    const Fault fault = guarded(**session, [&] {
      answer = step(work_on(**session, budget));
      return Fault{};
    });
    pool_->give_back(std::move(*session));
    if (fault) return fault.error;
    return answer;
  }

  [[nodiscard]] static Error wrong_process() {
    return fail(errc::wrong_process, "a forked child opens a store of its own");
  }

  const pid_t process_ = ::getpid();
  const std::unique_ptr<Pool> pool_;
  const MysqlOptions& options_;
  Clock& clock_;
  const Capabilities capabilities_;
  mysql::Shared shared_;
  Combiner combiner_;
};

result<StorePtr> open_with(std::unique_ptr<Pool> pool, Budget budget) {
  auto session = pool->take(budget);
  if (!session) return session.error();
  auto layout = mysql::ensure_schema(**session, pool->options(), budget);
  if (!layout) return layout.error();
  const auto durable = mysql::durability(**session, budget);
  if (!durable) return durable.error();
  if (const auto least = pool->options().min_durability; least && *durable < *least)
    return fail(errc::cannot_open, mysql::where(pool->options()) +
                                       " keeps less than min_durability asks for: see "
                                       "innodb_flush_log_at_trx_commit and sync_binlog (idem store "
                                       "doctor)");

  Capabilities capabilities;
  capabilities.backend = mysql::backend_name((*session)->server_version());
  capabilities.durability = *durable;
  capabilities.multi_process = true;
  capabilities.server_clock = true;
  capabilities.result_bytes_max = mysql::result_bytes_max((*session)->packet_bytes_max());
  pool->give_back(std::move(*session));
  return StorePtr(std::make_shared<MysqlStore>(std::move(pool), std::move(capabilities)));
}

}  // namespace

result<StorePtr> open_mysql(const MysqlOptions& options) {
  auto tls = mysql::tls_context(options);
  if (!tls) return tls.error();
  try {
    // Making tables is slow on some servers.
    return open_with(std::make_unique<Pool>(options, std::move(*tls)),
                     Budget(std::max<Micros>(options.timeout, std::chrono::seconds(10))));
  } catch (const std::exception& error) {
    return fail(errc::cannot_open, mysql::where(options) + ": " + error.what());
  }
}

}  // namespace idem
