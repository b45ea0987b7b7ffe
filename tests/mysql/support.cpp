#include "support.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/mysql/any_connection.hpp>
#include <boost/mysql/error_categories.hpp>
#include <boost/mysql/results.hpp>
#include <cstdlib>
#include <sstream>

#include "idem/clock.hpp"

namespace idem::mysql_test {

namespace sql = boost::mysql;

testing::ServerFixture& server() {
  static const std::unique_ptr<testing::ServerFixture> one = [] {
    auto started = testing::ServerFixture::mariadb();
    if (!started) throw std::runtime_error(started.error().message);
    return std::move(*started);
  }();
  return *one;
}

struct Raw::State {
  boost::asio::io_context loop;
  sql::any_connection connection{loop};
  sql::diagnostics diagnostics;
  sql::error_code last;

  sql::results execute(std::string_view text) {
    sql::results answer;
    connection.execute(sql::string_view(text.data(), text.size()), answer, last, diagnostics);
    return answer;
  }
};

Raw::Raw(std::string_view database, std::string_view user) : Raw(server(), database, user) {}

Raw::Raw(testing::ServerFixture& of, std::string_view database, std::string_view user)
    : state_(std::make_unique<State>()) {
  sql::connect_params params;
  params.server_address.emplace_unix_path(of.socket());
  params.username = std::string(user);
  params.database = std::string(database);
  state_->connection.connect(params, state_->last, state_->diagnostics);
  if (state_->last) throw std::runtime_error("raw connection: " + state_->last.message());
}

Raw::~Raw() = default;

int Raw::try_run(std::string_view text) {
  (void)state_->execute(text);
  if (!state_->last) return 0;
  return state_->last.category() == sql::get_common_server_category() ||
                 state_->last.category() == sql::get_mariadb_server_category()
             ? state_->last.value()
             : -1;
}

void Raw::run(std::string_view text) {
  EXPECT_EQ(try_run(text), 0) << text << ": " << state_->diagnostics.server_message();
}

std::string Raw::cell(std::string_view text) {
  const sql::results answer = state_->execute(text);
  EXPECT_FALSE(state_->last) << text << ": " << state_->diagnostics.server_message();
  if (state_->last || answer.rows().empty()) return {};
  const sql::field_view field = answer.rows()[0][0];
  if (field.is_string()) return std::string(field.get_string());
  if (field.is_blob()) {
    const auto bytes = field.get_blob();
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  std::ostringstream text_of;
  text_of << field;
  return text_of.str();
}

std::uint32_t Raw::id() const { return *state_->connection.connection_id(); }

Database::Database(std::string_view defaults) : Database(server(), defaults) {}

Database::Database(testing::ServerFixture& of, std::string_view defaults)
    : server_(of), name_("test_" + Owner::random().hex()) {
  Raw(server_, "").run("CREATE DATABASE " + name_ + " " + std::string(defaults));
}

Database::~Database() {
  try {
    Raw(server_, "").run("DROP DATABASE " + name_);
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
  }
}

MysqlOptions Database::options(MysqlOptions::Layout layout) const {
  MysqlOptions options;
  options.socket = server_.socket();
  options.user = "root";
  options.database = name_;
  options.layout = layout;
  return options;
}

StorePtr open(const MysqlOptions& options) {
  auto store = open_mysql(options);
  if (!store) throw std::runtime_error(store.error().message);
  return *store;
}

Draft claim_of(const Owner& owner, Duration lease) {
  Draft draft;
  draft.request_hash = Fingerprint::of_bytes("request");
  draft.owner = owner;
  draft.lease = lease;
  draft.keep = std::chrono::hours(24);
  return draft;
}

Draft success_of(const Record& held, std::string_view result) {
  Draft draft;
  draft.request_hash = held.request_hash;
  draft.owner = held.owner;
  draft.fence = held.fence;
  draft.attempt = held.attempt;
  draft.status = Status::success;
  draft.fresh = false;
  draft.keep = std::chrono::hours(24);
  draft.result = result;
  return draft;
}

Answer insert(IdempotencyStore& store, KeyRef key, const Draft& draft) {
  Insert op{key, draft, {}};
  store.insert({&op, 1});
  return op.answer;
}

Answer replace(IdempotencyStore& store, KeyRef key, std::uint64_t expected, const Draft& draft) {
  Replace op{key, expected, draft, {}};
  store.replace({&op, 1});
  return op.answer;
}

Answer load(IdempotencyStore& store, KeyRef key) {
  Load op{key, {}};
  store.load({&op, 1});
  return op.answer;
}

Answer remove(IdempotencyStore& store, KeyRef key, std::uint64_t expected) {
  Remove op{key, expected, {}};
  store.remove({&op, 1});
  return op.answer;
}

bool comes_true(const std::function<bool()>& question) {
  const Time until = system_clock().now() + std::chrono::seconds(10);
  while (!question()) {
    if (system_clock().now() >= until) return false;
    system_clock().pause(std::chrono::milliseconds(3));
  }
  return true;
}

Request request(std::string_view key) {
  return {Key(std::string(key)), Fingerprint::of_bytes("body")};
}

// Inserts that have been at it for a while. (innodb_trx would tell, but
// answers from a cache that frequent questions keep from being renewed.)
bool waiting_for_rows(Raw& root, int sessions) {
  return comes_true([&] {
    return std::stoi(root.cell("SELECT COUNT(*) FROM information_schema.processlist WHERE "
                               "command = 'Execute' AND info LIKE 'INSERT%' AND time_ms > 20")) >=
           sessions;
  });
}

bool nightly() { return std::getenv("IDEM_NIGHTLY") != nullptr; }

}  // namespace idem::mysql_test
