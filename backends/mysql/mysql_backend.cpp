#include <boost/mysql/pipeline.hpp>
#include <boost/version.hpp>

#include "backend.hpp"
#include "session.hpp"

namespace idem {
namespace mysql {
namespace {

constexpr std::string_view kBesideTable = "idem_beside_";
constexpr std::size_t kNameChars = 12;

result<StorePtr> open_url(const StoreUrl& url, const OpenOptions& open) {
  auto options = mysql_options(url);
  if (!options) return options.error();
  options->clock = open.clock;
  options->create = open.create;
  return open_mysql(*options);
}

std::string identity_of(const StoreUrl& url) {
  const auto options = mysql_options(url);
  if (!options) return {};
  const std::string host = options->host == "localhost" ? "127.0.0.1" : options->host;
  const std::string server =
      options->socket.empty() ? host + ":" + std::to_string(options->port) : options->socket;
  return server + "/" + options->database + "/" + options->table;
}

}  // namespace

result<void> execute(const MysqlOptions& options, std::string_view statement) {
  const Budget budget(std::chrono::seconds(10));
  auto tls = tls_context(options);
  if (!tls) return tls.error();
  auto session = Session::open(options, tls->get(), budget.left());
  if (!session) return session.error();
  const auto done = query(**session, statement, {}, budget);
  if (!done) return done.error();
  return {};
}

result<Fixture> open_beside(const StoreUrl& url, const OpenOptions& open) {
  auto options = mysql_options(url);
  if (!options) return options.error();
  options->clock = open.clock;
  options->table = std::string(kBesideTable) + Owner::random().hex().substr(0, kNameChars);
  Fixture made;
  made.owner = std::shared_ptr<void>(nullptr, [at = *options](void*) {
    (void)execute(at, "DROP TABLE IF EXISTS " + at.table + ", " + at.table + "_meta");
  });
  auto store = open_mysql(*options);
  if (!store) return store.error();
  made.store = std::move(*store);
  return made;
}

}  // namespace mysql

Backend mysql_backend() {
  Backend backend;
  backend.name = "mysql";
  backend.schemes = {"mysql", "mariadb"};
  backend.url_forms = {
      "mysql://user:password@host:3306/database?table=NAME&layout=clustered|articles",
      "mysql://user@localhost/database?socket=/path",
      "... &tls=disable|enable|require|verify&ca=FILE&connections=4&timeout=3s",
      "... &min_durability=none|process|power"};
  backend.summary = "one MySQL or MariaDB table: shared by every machine that reaches the server";
  backend.client = "Boost.MySQL " + std::to_string(BOOST_VERSION / 100000) + "." +
                   std::to_string(BOOST_VERSION / 100 % 1000);
  backend.open = mysql::open_url;
  backend.variants = {"clustered", "articles"};
  backend.fixture = mysql::make_fixture;
  backend.schema = [](const StoreUrl& url) -> result<std::string> {
    const auto options = mysql_options(url);
    if (!options) return options.error();
    return mysql_schema(options->layout.value_or(MysqlOptions::Layout::clustered), options->table);
  };
  backend.beside = mysql::open_beside;
  backend.diagnose = mysql::diagnose;
  backend.identity = mysql::identity_of;
  return backend;
}

}  // namespace idem
