// What may be wrong with a MySQL or MariaDB server and its tables, for `idem store doctor`.
#include <algorithm>
#include <cstdio>
#include <map>

#include "admin.hpp"
#include "backend.hpp"
#include "schema.hpp"

namespace idem::mysql {
namespace {

using Severity = Finding::Severity;

constexpr Micros kRoundTripMuch = std::chrono::milliseconds(50);
constexpr Micros kClockSome = std::chrono::seconds(1);
constexpr Micros kClockMuch = std::chrono::seconds(30);
constexpr std::uint64_t kResultBytesUsual = std::uint64_t{1} << 20;

std::string milliseconds_of(Micros time) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f ms", static_cast<double>(time.count()) / 1000);
  return text;
}

// 'user'@'host', as GRANT wants it.
std::string quoted_account(std::string_view account) {
  const std::size_t at = account.rfind('@');
  if (at == account.npos) return "'" + std::string(account) + "'";
  return "'" + std::string(account.substr(0, at)) + "'@'" + std::string(account.substr(at + 1)) +
         "'";
}

class Examination {
 public:
  Examination(Session& session, const MysqlOptions& options, const DiagnoseOptions& examine,
              Findings& findings)
      : session_(session),
        options_(options),
        min_durability_(std::max(examine.min_durability, options.min_durability)),
        clock_(options.clock != nullptr ? *options.clock : system_clock()),
        budget_(std::max<Micros>(options.timeout, std::chrono::seconds(10))),
        findings_(findings) {}

  void look_at_all() {
    look_at_round_trip();
    if (!read_settings()) return;
    look_at_version();
    look_at_role();
    look_at_commit();
    look_at_binary_log();
    look_at_defaults();
    look_at_clock();
    look_at_tables();
  }

 private:
  void add(Severity severity, std::string setting, std::string what, std::string remedy = {}) {
    if (severity == Severity::ok) remedy.clear();
    findings_.push_back({severity, std::move(setting), std::move(what), std::move(remedy)});
  }
  void add_error(std::string setting, const Error& error, std::string remedy) {
    add(Severity::bad, std::move(setting), error.message, std::move(remedy));
  }

  result<boost::mysql::results> ask(std::string_view text) {
    return query(session_, text, {}, budget_);
  }

  // "" if the server has no such variable.
  [[nodiscard]] std::string setting(const std::string& name) const {
    const auto found = settings_.find(name);
    return found == settings_.end() ? "" : found->second;
  }
  [[nodiscard]] bool is_on(const std::string& name) const {
    const std::string value = setting(name);
    return value == "ON" || value == "1" || value == "YES";
  }

  void look_at_round_trip() {
    const Time sent = system_clock().now();
    static_cast<void>(ask("SELECT 1"));
    const Micros took = system_clock().now() - sent;
    add(took > kRoundTripMuch ? Severity::warn : Severity::ok, "round trip", milliseconds_of(took),
        "move the server nearer to its users");
  }

  // What new sessions get, not what ours is set to. The two servers' versions have different names.
  bool read_settings() {
    const auto found =
        ask("SHOW GLOBAL VARIABLES WHERE Variable_name IN ('read_only', 'super_read_only', "
            "'innodb_read_only', 'wsrep_on', 'group_replication_single_primary_mode', "
            "'innodb_flush_log_at_trx_commit', 'innodb_doublewrite', 'log_bin', 'sync_binlog', "
            "'binlog_format', 'sql_mode', 'tx_isolation', 'transaction_isolation', "
            "'max_allowed_packet')");
    if (!found) {
      add_error("settings", found.error(), "ask again when the server is reached");
      return false;
    }
    for (const auto row : found->rows())
      settings_[std::string(bytes_of(row[0]))] = bytes_of(row[1]);
    return true;
  }

  void look_at_version() {
    const std::string name = backend_name(session_.server_version());
    int major = 0;
    int minor = 0;
    static_cast<void>(std::sscanf(session_.server_version().c_str(), "%d.%d", &major, &minor));
    const bool mariadb = name.rfind("mariadb", 0) == 0;
    const bool enough = mariadb ? major > 10 || (major == 10 && minor >= 6) : major >= 8;
    add(enough ? Severity::ok : Severity::bad, "version", name,
        "install MariaDB 10.6, MySQL 8 or newer");
  }

  // Two servers that both take claims of one key both grant them.
  void look_at_role() {
    bool writable = true;
    for (const char* const name : {"read_only", "super_read_only", "innodb_read_only"}) {
      if (!is_on(name)) continue;
      writable = false;
      const bool at_start = std::string_view(name) == "innodb_read_only";
      add(Severity::bad, name, "ON: it takes no claims",
          std::string("give the address of the server that is written to, or ") +
              (at_start ? "start it without --innodb-read-only"
                        : "SET GLOBAL " + std::string(name) + " = OFF"));
    }
    if (writable) add(Severity::ok, "read_only", "OFF");
    look_at_replication();
    if (is_on("wsrep_on"))
      add(Severity::warn, "wsrep_on", "ON: no promise is kept if claims reach two of its nodes",
          "give all users the address of one and the same node");
    if (setting("group_replication_single_primary_mode") == "OFF")
      add(Severity::warn, "group_replication_single_primary_mode",
          "OFF: no promise is kept if claims reach two of its members",
          "SELECT group_replication_switch_to_single_primary_mode()");
  }

  void look_at_replication() {
    const auto replica = ask("SHOW REPLICA STATUS");
    if (!replica) return look_at_running_replication();
    const bool follows = !replica->rows().empty();
    add(follows ? Severity::bad : Severity::ok, "replica",
        follows ? "it follows another server, whose claims come late" : "no",
        "give the address of its primary; if this is the primary now: STOP REPLICA; RESET REPLICA "
        "ALL");
  }

  // Without the right to ask for more, MariaDB still says whether it follows a server right now.
  void look_at_running_replication() {
    const auto status = ask("SHOW GLOBAL STATUS LIKE 'Slave_running'");
    const bool told = status && !status->rows().empty();
    if (told && bytes_of(status->rows()[0][1]) != "OFF")
      return add(Severity::bad, "replica", "it follows another server, whose claims come late",
                 "give the address of its primary");
    if (told) return add(Severity::ok, "replica", "follows no server now");
    add(Severity::warn, "replica", "SHOW REPLICA STATUS is forbidden",
        "GRANT REPLICATION CLIENT ON *.* TO " + account() + ", or make sure that it is none");
  }

  [[nodiscard]] std::string account() {
    const auto found = ask("SELECT CURRENT_USER()");
    if (!found || found->rows().empty()) return quoted_account(options_.user);
    return quoted_account(bytes_of(found->rows()[0][0]));
  }

  // `found`: how much a commit outlives because of this one setting.
  void add_durability(std::string name, Durability found, const std::string& value,
                      std::string remedy) {
    const bool too_little = min_durability_ && found < *min_durability_;
    const char* const why = found == Durability::none ? ": a crash may undo the last results"
                            : found == Durability::process
                                ? ": a power cut may undo the last results"
                                : "";
    add(too_little                   ? Severity::bad
        : found == Durability::power ? Severity::ok
                                     : Severity::warn,
        std::move(name), value + why, std::move(remedy));
  }

  void look_at_commit() {
    const std::string flush = setting("innodb_flush_log_at_trx_commit");
    // 3 is MariaDB's and flushes twice.
    const Durability found = flush == "0"                   ? Durability::none
                             : flush == "1" || flush == "3" ? Durability::power
                                                            : Durability::process;
    add_durability("innodb_flush_log_at_trx_commit", found, flush,
                   "SET GLOBAL innodb_flush_log_at_trx_commit = 1, and in my.cnf");
    const std::string twice = setting("innodb_doublewrite");
    if (twice == "OFF" || twice == "0")
      add(Severity::warn, "innodb_doublewrite", twice + ": a power cut may leave half a page",
          "innodb_doublewrite = ON in my.cnf, unless the file system writes whole pages");
  }

  void look_at_binary_log() {
    if (!is_on("log_bin")) return add(Severity::ok, "sync_binlog", "no binary log");
    const std::string sync = setting("sync_binlog");
    add_durability("sync_binlog", sync == "1" ? Durability::power : Durability::process, sync,
                   "SET GLOBAL sync_binlog = 1, and in my.cnf");
    const std::string format = setting("binlog_format");
    const bool refused = format == "STATEMENT";
    add(refused ? Severity::bad : Severity::ok, "binlog_format",
        format + (refused ? ": the server refuses every claim (error 1665)" : ""),
        "SET GLOBAL binlog_format = ROW, and in my.cnf");
  }

  // Our own sessions are set as they must be; a transaction of the application's is its own.
  void look_at_defaults() {
    const std::string mode = setting("sql_mode");
    const bool strict = mode.find("STRICT_") != mode.npos;
    const bool simultaneous = mode.find("SIMULTANEOUS_ASSIGNMENT") != mode.npos;
    add(strict && !simultaneous ? Severity::ok : Severity::warn, "sql_mode",
        strict && !simultaneous
            ? "strict"
            : "'" + mode + "': mysql_in_transaction refuses such a session, and " +
                  (simultaneous ? "assignments do not see each other" : "what is too long is cut"),
        "SET GLOBAL sql_mode = 'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,"
        "NO_ENGINE_SUBSTITUTION', and in my.cnf");
    const std::string level = setting("transaction_isolation");
    const std::string isolation = level.empty() ? setting("tx_isolation") : level;
    const bool usable = isolation == "READ-COMMITTED" || isolation == "REPEATABLE-READ";
    add(usable ? Severity::ok : Severity::warn, "transaction_isolation",
        isolation + (usable ? "" : ": mysql_in_transaction refuses such a session"),
        "SET GLOBAL TRANSACTION ISOLATION LEVEL READ COMMITTED, and in my.cnf");
    const std::uint64_t largest = result_bytes_max(session_.packet_bytes_max());
    add(largest < kResultBytesUsual ? Severity::warn : Severity::ok, "max_allowed_packet",
        setting("max_allowed_packet") + ": results over " + std::to_string(largest) +
            " bytes are refused",
        "SET GLOBAL max_allowed_packet = 16777216, and in my.cnf");
  }

  // A caller judges by lengths of time alone; but people compare times, and a server that is
  // corrected by so much in one step ends leases early or late.
  void look_at_clock() {
    Fields fields;
    add_time(fields, TimeSource{});
    const Time before = clock_.now();
    const auto found = query(session_, "SELECT " + std::string(statement_time()), fields, budget_);
    const Time after = clock_.now();
    if (!found || found->rows().empty())
      return add(Severity::warn, "clock", "the server's time could not be asked", "ask again");
    const Time theirs(Micros(signed_of(found->rows()[0][0])));
    const Micros off = theirs - (before + (after - before) / 2);
    const Micros size = off < Micros(0) ? -off : off;
    const Severity severity = size >= kClockMuch   ? Severity::bad
                              : size >= kClockSome ? Severity::warn
                                                   : Severity::ok;
    const char* const side = off < Micros(0) ? " behind" : " ahead";
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(size).count();
    add(severity, "clock",
        severity == Severity::ok ? milliseconds_of(size) + side
                                 : std::to_string(seconds) + " s" + side + " of this machine's",
        "set both clocks by NTP (chronyc makestep); not while claims are held");
  }

  void look_at_tables() {
    MysqlOptions looking = options_;
    looking.create = false;
    const auto layout = ensure_schema(session_, looking, budget_);
    if (!layout) {
      // The statement that mends it stands behind what is wrong.
      const std::string& message = layout.error().message;
      const std::size_t end = message.find("; ");
      return add(Severity::bad, "schema", message.substr(0, end),
                 end == message.npos ? "rename it, and let `idem store schema` make another one"
                                     : message.substr(end + 2));
    }
    const bool clustered = *layout == MysqlOptions::Layout::clustered;
    add(Severity::ok, "schema",
        options_.table + ", layout " + std::string(clustered ? "clustered" : "articles") +
            ", with its columns and unique key");
    look_at_indexes();
    look_at_rights();
  }

  void look_at_indexes() {
    const auto found =
        ask("SELECT GROUP_CONCAT(column_name ORDER BY seq_in_index SEPARATOR ',') FROM "
            "information_schema.statistics WHERE table_schema = DATABASE() AND table_name = '" +
            options_.table + "' GROUP BY index_name");
    if (!found) return add_error("schema", found.error(), "ask again");
    const auto need = [&](std::string_view columns, const std::string& name, const char* who) {
      const auto rows = found->rows();
      if (std::any_of(rows.begin(), rows.end(), [&](const auto& row) {
            return (std::string(bytes_of(row[0])) + ",").rfind(std::string(columns) + ",", 0) == 0;
          }))
        return;
      add(Severity::warn, "schema",
          "no index over " + std::string(columns) + ": " + who + " reads the whole table",
          "ALTER TABLE " + options_.table + " ADD KEY " + name + " (" + std::string(columns) + ")");
    };
    need("expires_at", "idx_idem_expires", "each sweep");
    need("status,lease_until", "idx_idem_lapsed", "each search for lapsed claims");
  }

  // A server looks at the rights when a statement is prepared; none is executed.
  void look_at_rights() {
    std::string missing;
    for (const Statement statement :
         {Statement::load, Statement::insert, Statement::replace, Statement::remove,
          Statement::clock, Statement::raise_floor}) {
      const Fault fault = session_.prepare(statement, 1, budget_);
      if (!fault) continue;
      if (fault.error.code != errc::denied)
        return add_error("open", fault.error, "idem store schema");
      const std::string_view said = fault.error.message;
      const std::size_t begin = said.find(": ");  // behind what we were doing
      missing += missing.empty() ? "" : "; ";
      missing += said.substr(begin == said.npos ? 0 : begin + 2);
    }
    add(missing.empty() ? Severity::ok : Severity::bad, "rights",
        missing.empty() ? "all that is needed" : missing,
        "GRANT SELECT, INSERT, UPDATE, DELETE ON " + options_.database + ".* TO " +
            (missing.empty() ? "" : account()));
  }

  Session& session_;
  const MysqlOptions& options_;
  std::optional<Durability> min_durability_;
  Clock& clock_;
  const Budget budget_;
  Findings& findings_;
  std::map<std::string, std::string> settings_;
};

Finding unreachable(const Error& error) {
  switch (error.code) {
    case errc::denied:
      return {Severity::bad, "password", error.message, "check user and password of the URL"};
    case errc::cannot_open:
      return {Severity::bad, "open", error.message,
              "check the database's name and 'tls' of the URL"};
    default:
      return {Severity::bad, "reach", error.message,
              "check that the server runs, its address, and max_connections"};
  }
}

}  // namespace

Findings diagnose(const StoreUrl& url, const DiagnoseOptions& options) {
  auto parsed = mysql_options(url);
  if (!parsed) return {{Severity::bad, "url", parsed.error().message, "idem stores"}};
  parsed->clock = options.open.clock;
  const auto tls = tls_context(*parsed);
  if (!tls) return {{Severity::bad, "ca", tls.error().message, "name the CA's file: ?ca=FILE"}};
  const auto session = Session::open(*parsed, tls->get(), kConnectLimit);
  if (!session) return {unreachable(session.error())};
  Findings findings;
  Examination(**session, *parsed, options, findings).look_at_all();
  return findings;
}

}  // namespace idem::mysql
