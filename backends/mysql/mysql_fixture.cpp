#include <cstdlib>
#include <mutex>

#include "backend.hpp"
#include "idem/mysql_store.hpp"
#include "idem/testing/server_fixture.hpp"
#include "session.hpp"

namespace idem {
namespace {

using testing::ServerFixture;

constexpr std::string_view kServerVariable = "IDEM_MYSQL_SERVER";

// Where fixtures make their databases: the server that the environment names (a URL whose user may
// create databases), else a private one, started once and for the life of the process.
result<std::string> server_url() {
  if (const char* given = std::getenv(std::string(kServerVariable).c_str()))
    return std::string(given);
  static std::mutex mutex;
  static std::unique_ptr<ServerFixture> server;
  const std::lock_guard lock(mutex);
  if (!server) {
    auto started = ServerFixture::mariadb();
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
    if (auto made = mysql::execute(options, "CREATE DATABASE " + name); !made) return made.error();
    options.database = name;
    return std::make_shared<Database>(options);
  }
  explicit Database(MysqlOptions options) : options_(std::move(options)) {}
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database() { (void)mysql::execute(options_, "DROP DATABASE " + options_.database); }

 private:
  MysqlOptions options_;
};

}  // namespace

namespace mysql {

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

}  // namespace mysql
}  // namespace idem
