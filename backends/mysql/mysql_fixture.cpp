#include <boost/mysql/pipeline.hpp>
#include <boost/version.hpp>
#include <cstdlib>
#include <mutex>

#include "idem/mysql_store.hpp"
#include "idem/testing/mysql_server.hpp"
#include "session.hpp"

namespace idem {
namespace {

using testing::MysqlServer;

constexpr std::string_view kServerVariable = "IDEM_MYSQL_SERVER";

// Where fixtures make their databases: the server that the environment names (a URL whose user may
// create databases), else a private one, started once and for the life of the process.
result<std::string> server_url() {
  if (const char* given = std::getenv(std::string(kServerVariable).c_str()))
    return std::string(given);
  static std::mutex mutex;
  static std::unique_ptr<MysqlServer> server;
  const std::lock_guard lock(mutex);
  if (!server) {
    auto started = MysqlServer::start();
    if (!started) return started.error();
    server = std::move(*started);
  }
  return server->socket_url("mysql");
}

result<MysqlOptions> server_options() {
  const auto text = server_url();
  if (!text) return text.error();
  const auto url = StoreUrl::parse(*text);
  if (!url) return url.error();
  return mysql_options(*url);
}

result<void> execute(const MysqlOptions& options, const std::string& statement) {
  const mysql::Budget budget(std::chrono::seconds(10));
  auto tls = mysql::tls_context(options);
  if (!tls) return tls.error();
  auto session = mysql::Session::open(options, tls->get(), budget.left());
  if (!session) return session.error();
  const auto done = mysql::query(**session, statement, {}, budget);
  if (!done) return done.error();
  return {};
}

std::string url_of(const MysqlOptions& options, std::string_view variant) {
  const std::string password = options.password.empty() ? "" : ":" + options.password;
  std::string url = "mysql://" + options.user + password + "@" + options.host;
  if (options.socket.empty()) url += ":" + std::to_string(options.port);
  url += "/" + options.database + "?layout=" + std::string(variant);
  if (!options.socket.empty()) url += "&socket=" + options.socket;
  return url;
}

// A database of its own, dropped with the last reference.
class Database {
 public:
  static result<std::shared_ptr<Database>> make(MysqlOptions& options) {
    const std::string name = "idem_" + Owner::random().hex();
    if (auto made = execute(options, "CREATE DATABASE " + name); !made) return made.error();
    options.database = name;
    return std::make_shared<Database>(options);
  }
  explicit Database(MysqlOptions options) : options_(std::move(options)) {}
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database() { (void)execute(options_, "DROP DATABASE " + options_.database); }

 private:
  MysqlOptions options_;
};

result<Fixture> make_fixture(std::string_view variant, const OpenOptions& open_options) {
  auto options = server_options();
  if (!options) return options.error();
  auto database = Database::make(*options);
  if (!database) return database.error();
  options->layout =
      variant == "articles" ? MysqlOptions::Layout::articles : MysqlOptions::Layout::clustered;
  options->clock = open_options.clock;
  Fixture fixture;
  fixture.owner = *database;
  fixture.url = url_of(*options, variant.empty() ? "clustered" : variant);
  auto store = open_mysql(*options);
  if (!store) return store.error();
  fixture.store = *store;
  return fixture;
}

result<StorePtr> open_url(const StoreUrl& url, const OpenOptions& open_options) {
  auto options = mysql_options(url);
  if (!options) return options.error();
  options->clock = open_options.clock;
  return open_mysql(*options);
}

}  // namespace

Backend mysql_backend() {
  Backend backend;
  backend.name = "mysql";
  backend.schemes = {"mysql", "mariadb"};
  backend.url_forms = {
      "mysql://user:password@host:3306/database?table=NAME&layout=clustered|articles",
      "mysql://user@localhost/database?socket=/path",
      "... &tls=disable|enable|require|verify&ca=FILE&connections=4&timeout=3s"};
  backend.summary = "one MySQL or MariaDB table: shared by every machine that reaches the server";
  backend.client = "Boost.MySQL " + std::to_string(BOOST_VERSION / 100000) + "." +
                   std::to_string(BOOST_VERSION / 100 % 1000);
  backend.open = open_url;
  backend.variants = {"clustered", "articles"};
  backend.fixture = make_fixture;
  return backend;
}

}  // namespace idem
