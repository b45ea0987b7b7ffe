// The articles' way on MySQL or MariaDB without any library of ours: INSERT into a table with a
// unique index, by the C client, a connection for each client; in autocommit, and inside the
// business transaction, where a duplicate waits on the index until the first commits.
#include "contention/contender.hpp"
#include "contention/mysql_client.hpp"

namespace idem::bench {
namespace {

constexpr unsigned kDuplicate = 1062;
constexpr unsigned kLockTimeout = 1205;
constexpr unsigned kDeadlock = 1213;
constexpr int kTries = 5;

const char* schema_of(bool clustered) {
  return clustered ? "CREATE TABLE IF NOT EXISTS bare_record ("
                     " biz_type VARBINARY(64) NOT NULL, idem_key VARBINARY(128) NOT NULL,"
                     " request_hash CHAR(64) CHARACTER SET ascii NOT NULL,"
                     " status TINYINT NOT NULL, create_time DATETIME(6) NOT NULL,"
                     " result_json MEDIUMBLOB, PRIMARY KEY (biz_type, idem_key)) ENGINE=InnoDB"
                   : "CREATE TABLE IF NOT EXISTS bare_record ("
                     " id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,"
                     " biz_type VARBINARY(64) NOT NULL, idem_key VARBINARY(128) NOT NULL,"
                     " request_hash CHAR(64) CHARACTER SET ascii NOT NULL,"
                     " status TINYINT NOT NULL, create_time DATETIME(6) NOT NULL,"
                     " result_json MEDIUMBLOB, UNIQUE KEY uk_bare (biz_type, idem_key))"
                     " ENGINE=InnoDB";
}

class InsertAsker final : public Asker {
 public:
  InsertAsker(MysqlClient connection, bool inside)
      : connection_(std::move(connection)), inside_(inside) {}
  ~InsertAsker() override { walk_away(); }

  Heard claim(const Request& request) override {
    where_ =
        "biz_type = " + quoted(request.key.tenant) + " AND idem_key = " + quoted(request.key.key);
    const std::string insert =
        "INSERT INTO bare_record (biz_type, idem_key, request_hash, status, create_time) VALUES (" +
        quoted(request.key.tenant) + ", " + quoted(request.key.key) + ", '" +
        request.fingerprint.hex() + "', 0, NOW(6))";
    for (int tries = 0; tries < kTries; ++tries) {
      if (inside_ && run("START TRANSACTION") != 0) return failed();
      const unsigned code = run(insert);
      if (code == 0) {
        open_ = inside_;
        return Heard::won;
      }
      if (code == kDuplicate) return inside_ ? look() : Heard::running;
      if (inside_) (void)run("ROLLBACK");
      if (code != kDeadlock && code != kLockTimeout) return failed();
      ++costs_.retries;
    }
    return failed();
  }

  bool complete(std::string_view result) override {
    const bool taken = run("UPDATE bare_record SET status = 1, result_json = " + quoted(result) +
                           " WHERE " + where_ + " AND status = 0") == 0 &&
                       mysql_affected_rows(connection_.get()) == 1;
    if (!open_) return taken;
    open_ = false;
    return run("COMMIT") == 0 && taken;
  }

  void walk_away() override {
    if (open_) (void)run("COMMIT");
    open_ = false;
  }

 private:
  // 0, or the server's number.
  unsigned run(const std::string& statement) {
    ++costs_.trips;
    mysql_real_query(connection_.get(), statement.data(), statement.size());
    const unsigned code = mysql_errno(connection_.get());
    if (code != 0) trouble_ = mysql_error(connection_.get());
    return code;
  }

  Heard failed() {
    open_ = false;
    return Heard::failed;
  }

  // The first has committed: what did it leave?
  Heard look() {
    if (run("SELECT result_json FROM bare_record WHERE " + where_) != 0) return failed();
    MYSQL_RES* rows = mysql_store_result(connection_.get());
    MYSQL_ROW row = rows == nullptr ? nullptr : mysql_fetch_row(rows);
    const bool done = row != nullptr && row[0] != nullptr;
    if (done) result_.assign(row[0], mysql_fetch_lengths(rows)[0]);
    mysql_free_result(rows);
    if (run("COMMIT") != 0) return failed();
    return done ? Heard::done : Heard::running;
  }

  std::string quoted(std::string_view text) {
    std::string out(2 * text.size() + 1, '\0');
    out.resize(mysql_real_escape_string(connection_.get(), out.data(), text.data(), text.size()));
    return "'" + out + "'";
  }

  const MysqlClient connection_;
  const bool inside_;
  bool open_ = false;
  std::string where_;
};

result<std::unique_ptr<Asker>> enter(StoreUrl url, bool clustered, bool inside) {
  auto connected = connect_mysql(url);
  if (!connected) return connected.error();
  MysqlClient connection = std::move(*connected);
  if (mysql_query(connection.get(), schema_of(clustered)) != 0)
    return fail(errc::cannot_open,
                url.redacted() + ": " + std::string(mysql_error(connection.get())));
  return std::make_unique<InsertAsker>(std::move(connection), inside);
}

}  // namespace

std::vector<Contender> bare_mysql(const Place& place, Clock&) {
  const auto url = mysql_url(place);
  if (!url) return {};
  const bool clustered = !place.name.ends_with("/articles");
  std::vector<Contender> both;
  for (const bool inside : {false, true}) {
    Contender bare;
    bare.name = place.name + (inside ? " bare INSERT in transaction" : " bare INSERT");
    bare.how = std::string("INSERT into a ") +
               (clustered ? "primary key over the key" : "BIGINT id and a unique index") +
               (inside ? ", business and UPDATE in one transaction" : ", autocommit") +
               ", no library";
    bare.durability = place.fixture.store->capabilities().durability;
    bare.keeps_result = inside;
    if (place.is_private) {
      bare.enter = [url = *url, clustered, inside] { return enter(url, clustered, inside); };
    } else {
      bare.skipped = "makes a table of its own: only in a private server";
    }
    both.push_back(std::move(bare));
  }
  return both;
}

}  // namespace idem::bench
