#include "idem/sqlite_store.hpp"

#include <unistd.h>

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "file_identity.hpp"
#include "idem/combiner.hpp"
#include "open_file.hpp"
#include "schema.hpp"
#include "writer.hpp"

namespace idem {
namespace {

using sqlite::Look;
using sqlite::Reader;
using sqlite::Step;
using sqlite::Writer;

// A sweep gives way to other writers after so many records.
constexpr std::size_t kSweepPerTransaction = 500;

struct WriteJob final : CombinerJob {
  boost::container::small_vector<Step, 1> steps;  // one call is one step, and allocates nothing
};

struct ReadJob final : CombinerJob {
  explicit ReadJob(Look& what) : look(&what) {}
  Look* look;
};

struct ReadLane {
  std::optional<sqlite::Connection> connection;
  std::optional<Reader> reader;
};

// Everything that has to be left alone in a forked child: SQLite's handles do not survive a fork.
struct Engine {
  Engine(const SqliteOptions& with, std::string absolute, Clock& clock)
      : options(with), path(std::move(absolute)), time(clock) {}

  void write(std::span<CombinerJob* const> jobs);
  void read(std::size_t lane, std::span<CombinerJob* const> jobs);

  SqliteOptions options;
  std::string path;
  sqlite::FilesIdentity files;
  sqlite::StoreTime time;
  std::optional<Writer> writer;  // closed last: its checkpoint finds the readers gone
  std::vector<ReadLane> lanes;   // empty: a private database, whose one connection does it all
  std::vector<Step> batch;       // of the writing lane; kept for its capacity
  std::optional<Combiner> writing;
  std::optional<Combiner> reading;
};

void Engine::write(std::span<CombinerJob* const> jobs) {
  if (const auto trouble = files.trouble()) {
    for (CombinerJob* job : jobs) sqlite::fail_all(static_cast<WriteJob&>(*job).steps, *trouble);
    return;
  }
  if (jobs.size() == 1) {
    auto& job = static_cast<WriteJob&>(*jobs[0]);
    writer->execute(job.steps);
    return;
  }
  batch.clear();
  for (CombinerJob* job : jobs) {
    const auto& steps = static_cast<WriteJob&>(*job).steps;
    batch.insert(batch.end(), steps.begin(), steps.end());
  }
  writer->execute(batch);
}

void Engine::read(std::size_t lane, std::span<CombinerJob* const> jobs) {
  ReadLane& mine = lanes[lane];
  std::optional<Error> trouble = files.trouble();
  if (!trouble && !mine.reader) {
    auto connection = sqlite::open_reader(path, options);
    if (connection) {
      mine.connection.emplace(std::move(*connection));
      if (auto reader = Reader::make(*mine.connection, time); reader)
        mine.reader.emplace(std::move(*reader));
      else
        trouble = reader.error();
    } else {
      trouble = connection.error();
    }
  }
  for (CombinerJob* job : jobs) {
    Look& look = *static_cast<ReadJob&>(*job).look;
    if (trouble)
      look.error = fail(errc::unavailable, trouble->message);
    else
      look.run(*mine.reader);
  }
}

class SqliteStore final : public IdempotencyStore {
 public:
  SqliteStore(std::unique_ptr<Engine> engine, Capabilities capabilities)
      : engine_(std::move(engine)), capabilities_(std::move(capabilities)), process_(getpid()) {}

  ~SqliteStore() override {
    if (!at_home()) static_cast<void>(engine_.release());
  }

  void insert(std::span<Insert> ops) override;
  void replace(std::span<Replace> ops) override { write(ops); }
  void load(std::span<Load> ops) override;
  void remove(std::span<Remove> ops) override { write(ops); }
  result<std::uint64_t> sweep(std::size_t limit) override;
  result<Page> list(const ListQuery& query) override;
  result<StoreStats> stats() override;
  [[nodiscard]] const Capabilities& capabilities() const noexcept override { return capabilities_; }

 private:
  [[nodiscard]] bool at_home() const { return getpid() == process_; }
  [[nodiscard]] Error stranger() const {
    return fail(errc::wrong_process,
                "the store " + engine_->path +
                    " was opened by the parent of this forked process: open it "
                    "again here");
  }

  template <class Op>
  void write(std::span<Op> ops);
  void run(WriteJob& job) { engine_->writing->run(job); }
  void look(Look& look);

  std::unique_ptr<Engine> engine_;
  Capabilities capabilities_;
  pid_t process_;
};

template <class Op>
void fail_all(std::span<Op> ops, const Error& error) {
  for (Op& op : ops) {
    op.answer.state = Answer::State::failed;
    op.answer.error = error;
  }
}

template <class Op>
void SqliteStore::write(std::span<Op> ops) {
  if (ops.empty()) return;
  if (!at_home()) return fail_all(ops, stranger());
  WriteJob job;
  const Time since = system_clock().now();
  for (Op& op : ops) job.steps.push_back({&op, since});
  run(job);
}

// A duplicate is answered by a reader: it waits for nobody's fsync. Only what the readers do not
// find goes to the writer, whose word is final.
void SqliteStore::insert(std::span<Insert> ops) {
  if (engine_->lanes.empty()) return write(ops);
  if (ops.empty()) return;
  if (!at_home()) return fail_all(ops, stranger());
  Look all{[ops](Reader& reader) {
             for (Insert& op : ops) reader.load(op.key, op.answer);
           },
           {}};
  look(all);
  WriteJob job;
  const Time since = system_clock().now();
  for (Insert& op : ops) {
    const bool found = !all.error && (op.answer.state == Answer::State::stands ||
                                      op.answer.error.code == errc::corrupt);
    if (!found) job.steps.push_back({&op, since});
  }
  if (!job.steps.empty()) run(job);
}

void SqliteStore::load(std::span<Load> ops) {
  if (engine_->lanes.empty()) return write(ops);
  if (ops.empty()) return;
  if (!at_home()) return fail_all(ops, stranger());
  Look all{[ops](Reader& reader) {
             for (Load& op : ops) reader.load(op.key, op.answer);
           },
           {}};
  look(all);
  if (all.error) fail_all(ops, *all.error);
}

// By a reader; on a private database by the only connection.
void SqliteStore::look(Look& look) {
  if (!engine_->lanes.empty()) {
    ReadJob job(look);
    engine_->reading->run(job);
    return;
  }
  WriteJob job;
  job.steps.push_back({&look, system_clock().now()});
  run(job);
}

result<std::uint64_t> SqliteStore::sweep(std::size_t limit) {
  if (!at_home()) return stranger();
  std::uint64_t removed = 0;
  while (removed < limit) {
    sqlite::Sweep sweep{std::min<std::size_t>(limit - removed, kSweepPerTransaction), 0, {}};
    WriteJob job;
    job.steps.push_back({&sweep, system_clock().now()});
    run(job);
    if (sweep.error) return *sweep.error;
    removed += sweep.removed;
    if (sweep.removed < sweep.limit) break;
  }
  return removed;
}

result<Page> SqliteStore::list(const ListQuery& query) {
  if (!at_home()) return stranger();
  result<Page> page = Page();
  Look what{[&](Reader& reader) { page = reader.list(query); }, {}};
  look(what);
  if (what.error) return *what.error;
  return page;
}

result<StoreStats> SqliteStore::stats() {
  if (!at_home()) return stranger();
  result<StoreStats> stats = StoreStats();
  Look what{[&](Reader& reader) { stats = reader.stats(); }, {}};
  look(what);
  if (what.error) return *what.error;
  return stats;
}

}  // namespace

std::string sqlite_schema() { return sqlite::kSchemaSql; }

result<StorePtr> open_sqlite(const SqliteOptions& options) {
  auto path = sqlite::absolute_path(options.path);
  if (!path) return path.error();
  const bool in_memory = *path == ":memory:";
  auto connection = sqlite::open_writer(*path, options);
  if (!connection) return connection.error();
  const auto durability = sqlite::durability_of(*connection);
  if (!durability) return durability.error();

  Clock& clock = options.clock == nullptr ? system_clock() : *options.clock;
  auto engine = std::make_unique<Engine>(options, *path, clock);
  if (!in_memory) {
    auto files = sqlite::FilesIdentity::of(*path, *connection);
    if (!files) return files.error();
    engine->files = std::move(*files);
  }
  auto writer = Writer::make(std::move(*connection), engine->time, options.busy_timeout);
  if (!writer) return writer.error();
  engine->writer.emplace(std::move(*writer));
  Engine* const it = engine.get();
  engine->writing.emplace(
      Combiner::Options{},
      [it](std::size_t, std::span<CombinerJob* const> jobs) { it->write(jobs); });
  if (!in_memory) {
    const std::size_t lanes = std::max<std::size_t>(options.readers, 1);
    engine->lanes.resize(lanes);
    engine->reading.emplace(
        Combiner::Options{lanes, 32},
        [it](std::size_t lane, std::span<CombinerJob* const> jobs) { it->read(lane, jobs); });
  }
  Capabilities capabilities;
  capabilities.backend = "sqlite";
  capabilities.durability = *durability;
  capabilities.multi_process = !in_memory;
  capabilities.result_bytes_max = kSqliteResultBytesMax;
  return StorePtr(std::make_shared<SqliteStore>(std::move(engine), std::move(capabilities)));
}

}  // namespace idem
