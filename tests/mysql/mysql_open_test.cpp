// URLs, passwords, rights and certificates: what stands between a program and its server.
#include <gmock/gmock.h>

#include <cstdlib>

#include "support.hpp"

namespace idem::mysql_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

result<MysqlOptions> parse(std::string_view text) {
  const auto url = StoreUrl::parse(text);
  if (!url) return url.error();
  return mysql_options(*url);
}

TEST(MysqlUrl, EveryPartIsRead) {
  const auto options = parse(
      "mysql://app:s%40cret@db.example:3307/shop?table=idem_1&layout=articles&tls=verify&"
      "ca=/etc/ca.pem&connections=8&timeout=500ms");
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->host, "db.example");
  EXPECT_EQ(options->port, 3307);
  EXPECT_EQ(options->user, "app");
  EXPECT_EQ(options->password, "s@cret");
  EXPECT_EQ(options->database, "shop");
  EXPECT_EQ(options->table, "idem_1");
  EXPECT_EQ(options->layout, MysqlOptions::Layout::articles);
  EXPECT_EQ(options->tls, MysqlOptions::Tls::verify);
  EXPECT_EQ(options->ca, "/etc/ca.pem");
  EXPECT_EQ(options->connections, 8U);
  EXPECT_EQ(options->timeout, Duration(500ms));
}

TEST(MysqlUrl, WhatIsWrongIsNamed) {
  const std::string long_table(49, 't');
  for (const auto& [text, word] : std::vector<std::pair<std::string, std::string>>{
           {"mysql://u@h/", "database"},
           {"mysql://u@h", "database"},
           {"mysql:db", "server"},
           {"mysql://u@h/a/b", "a/b"},
           {"mysql://u@h/db?table=a-b", "table"},
           {"mysql://u@h/db?table=a%60b", "table"},
           {"mysql://u@h/db?table=" + long_table, "table"},
           {"mysql://u@h/db?layout=heap", "layout"},
           {"mysql://u@h/db?tls=maybe", "tls"},
           {"mysql://u@h/db?ca=/x", "tls=verify"},
           {"mysql://u@h/db?socket=rel", "socket"},
           {"mysql://u@h:1/db?socket=/s", "port"},
           {"mysql://u@h/db?socket=/s&tls=require", "TLS"},
           {"mysql://u@h/db?connections=0", "connections"},
           {"mysql://u@h/db?connections=65", "connections"},
           {"mysql://u@h/db?timeout=5", "timeout"},
           {"mysql://u@h/db?tables=x", "did you mean 'table'"}}) {
    const auto options = parse(text);
    ASSERT_FALSE(options) << text;
    EXPECT_EQ(options.error().code, errc::invalid_argument) << text;
    EXPECT_THAT(options.error().message, HasSubstr(word)) << text;
  }
}

TEST(MysqlOpen, AWrongPasswordIsDeniedAndNeverShown) {
  const Database database;
  Raw root;
  root.run("CREATE USER secretive@'%' IDENTIFIED BY 'right-one'");
  root.run("GRANT ALL ON " + database.name() + ".* TO secretive@'%'");
  MysqlOptions options = database.options();
  options.socket.clear();
  options.port = server().port();
  options.user = "secretive";
  options.password = "wrong-one";
  const auto refused = open_mysql(options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::denied);
  EXPECT_THAT(refused.error().message, Not(HasSubstr("wrong-one")));
  options.password = "right-one";
  EXPECT_TRUE(open_mysql(options));
  root.run("DROP USER secretive@'%'");
}

TEST(MysqlOpen, NoServerNoDatabaseNoRight) {
  MysqlOptions options = Database().options();  // dropped again
  EXPECT_EQ(open_mysql(options).error().code, errc::cannot_open);
  options.socket = "/nowhere/socket";
  EXPECT_EQ(open_mysql(options).error().code, errc::unavailable);
  options.socket.clear();
  options.port = *testing::free_port();
  EXPECT_EQ(open_mysql(options).error().code, errc::unavailable);
}

TEST(MysqlOpen, TheStoreTellsWhatTheServerIs) {
  const Database database;
  const StorePtr store = open(database.options());
  EXPECT_THAT(store->capabilities().backend, HasSubstr("mariadb"));
  EXPECT_TRUE(store->capabilities().server_clock);
  EXPECT_TRUE(store->capabilities().multi_process);
  EXPECT_FALSE(store->watch(kKey, [] {}));
  EXPECT_EQ(store->capabilities().durability, Durability::power);
  Raw root;
  root.run("SET GLOBAL innodb_flush_log_at_trx_commit = 2");
  EXPECT_EQ(open(database.options())->capabilities().durability, Durability::process);
  MysqlOptions demanding = database.options();
  demanding.min_durability = Durability::process;
  EXPECT_TRUE(open_mysql(demanding));
  demanding.min_durability = Durability::power;
  const auto refused = open_mysql(demanding);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::cannot_open);
  EXPECT_THAT(refused.error().message, HasSubstr("innodb_flush_log_at_trx_commit"));
  root.run("SET GLOBAL innodb_flush_log_at_trx_commit = 0");
  EXPECT_EQ(open(database.options())->capabilities().durability, Durability::none);
  root.run("SET GLOBAL innodb_flush_log_at_trx_commit = 1");
}

// A text query must never become two: nothing we send is taken apart at a semicolon.
TEST(MysqlOpen, MultiStatementsAreOff) {
  const Database database;
  const StorePtr store = open(database.options());
  const std::string evil = "x'; DROP TABLE idempotent_record; -- ";
  const Answer claimed = insert(*store, {"", "", evil}, claim_of(Owner::random()));
  EXPECT_EQ(claimed.state, Answer::State::written);
  EXPECT_EQ(load(*store, {"", "", evil}).held, claimed.held);
}

class MysqlTls : public ::testing::Test {
 protected:
  void SetUp() override {
    auto made = testing::TempDirectory::make("tls");
    ASSERT_TRUE(made);
    directory_ = std::make_unique<testing::TempDirectory>(std::move(*made));
    const std::string make =
        "cd " + directory_->path() +
        " && openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -subj /CN=ca"
        " -days 2 2>/dev/null"
        " && openssl req -newkey rsa:2048 -nodes -keyout server.key -out server.csr"
        " -subj /CN=localhost 2>/dev/null"
        " && printf 'subjectAltName=DNS:localhost' > ext"
        " && openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2"
        " -extfile ext -out server.pem 2>/dev/null && chmod 644 *.key && chmod 755 .";
    ASSERT_EQ(std::system(make.c_str()), 0);
    auto started = testing::ServerFixture::mariadb({"--ssl-ca=" + (*directory_ / "ca.pem"),
                                                    "--ssl-cert=" + (*directory_ / "server.pem"),
                                                    "--ssl-key=" + (*directory_ / "server.key")});
    ASSERT_TRUE(started) << started.error().message;
    server_ = std::move(*started);
    Raw(*server_, "").run("CREATE DATABASE db");
  }

  [[nodiscard]] MysqlOptions options(MysqlOptions::Tls tls, const std::string& host) const {
    MysqlOptions options;
    options.host = host;
    options.port = server_->port();
    options.user = "root";
    options.database = "db";
    options.tls = tls;
    if (tls == MysqlOptions::Tls::verify) options.ca = *directory_ / "ca.pem";
    return options;
  }

  std::unique_ptr<testing::TempDirectory> directory_;
  std::unique_ptr<testing::ServerFixture> server_;
};

TEST_F(MysqlTls, VerifyWantsTheRightAuthorityAndTheRightName) {
  EXPECT_TRUE(open_mysql(options(MysqlOptions::Tls::verify, "localhost")));
  EXPECT_TRUE(open_mysql(options(MysqlOptions::Tls::require, "127.0.0.1")));
  const auto other_name = open_mysql(options(MysqlOptions::Tls::verify, "127.0.0.1"));
  ASSERT_FALSE(other_name);
  EXPECT_EQ(other_name.error().code, errc::cannot_open) << other_name.error().message;
  MysqlOptions other_authority = options(MysqlOptions::Tls::verify, "localhost");
  other_authority.ca.clear();
  EXPECT_EQ(open_mysql(other_authority).error().code, errc::cannot_open);
  other_authority.ca = "/nowhere.pem";
  EXPECT_EQ(open_mysql(other_authority).error().code, errc::cannot_open);
}

TEST(MysqlWithoutTls, RequireFindsNoTlsAndDoesNotConnect) {
  const Database database;
  MysqlOptions options = database.options();
  options.socket.clear();
  options.port = server().port();
  options.tls = MysqlOptions::Tls::require;
  EXPECT_EQ(open_mysql(options).error().code, errc::cannot_open);
}

}  // namespace
}  // namespace idem::mysql_test
