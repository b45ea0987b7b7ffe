#include "session.hpp"

#include <algorithm>

namespace idem::mysql {
namespace {

namespace sql = boost::mysql;

// Strict: what does not fit is an error, not cut. READ COMMITTED: no gap is locked, and every
// statement sees the latest commit. The other lines undo what a server's configuration may have.
constexpr std::string_view kSettings[] = {
    "SET NAMES utf8mb4",
    "SET SESSION sql_mode = 'STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION', "
    "time_zone = '+00:00', innodb_lock_wait_timeout = 1, autocommit = 1, "
    "completion_type = 'NO_CHAIN', wait_timeout = 28800",
    "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    "SET SESSION TRANSACTION READ WRITE",
};
constexpr std::string_view kFacts =
    "SELECT VERSION(), @@max_allowed_packet, @@innodb_rollback_on_timeout";

Fault not_sent(Fault fault) {
  if (fault.kind != Fault::Kind::broken) return fault;
  return {Fault::Kind::refused, true, true,
          fail(errc::unavailable, std::move(fault.error.message))};
}

Fault too_late() {
  return {Fault::Kind::refused, false, false,
          fail(errc::unavailable, "no time was left to send the statement")};
}

}  // namespace

result<std::unique_ptr<Session>> Session::open(const MysqlOptions& options,
                                               boost::asio::ssl::context* tls, Micros limit) {
  const Budget budget(std::min(limit, kConnectLimit));
  auto own = std::make_unique<Connection>(options, tls);
  Connection& connection = *own;
  std::unique_ptr<Session> session(new Session(options.table, std::move(own), false));
  auto connected = connection.connect(options, budget.left());
  if (!connected) return connected.error();
  auto settled = session->settle_in(options, budget.left());
  if (!settled) return settled.error();
  return session;
}

std::unique_ptr<Session> Session::borrow(sql::any_connection& connection, std::string table) {
  return std::unique_ptr<Session>(
      new Session(std::move(table), std::make_unique<BorrowedLink>(connection), true));
}

result<void> Session::settle_in(const MysqlOptions& options, Micros limit) {
  sql::pipeline_request request;
  for (const std::string_view text : kSettings) request.add_execute(text);
  request.add_execute(kFacts);
  std::vector<sql::stage_response> replies;
  if (const Fault fault = link_->run(request, replies, limit)) {
    return fail(errc::unavailable,
                "cannot connect to " + where(options) + ": " + fault.error.message);
  }
  for (const sql::stage_response& reply : replies) {
    if (reply.error()) return connect_error(reply.error(), reply.diag(), where(options));
  }
  const auto row = replies.back().get_results().rows().at(0);
  server_version_ = std::string(bytes_of(row[0]));
  packet_bytes_max_ = unsigned_of(row[1]);
  rolls_back_on_wait_ = unsigned_of(row[2]) != 0;
  return {};
}

Fault Session::prepare(Statement statement, std::size_t size_index, const Budget& budget) {
  auto& place = statements_[static_cast<std::size_t>(statement)][size_index];
  if (place) return {};
  if (budget.over()) return too_late();
  sql::pipeline_request request;
  request.add_prepare_statement(statement_text(statement, table_, std::size_t{1} << size_index));
  std::vector<sql::stage_response> replies;
  if (Fault fault = link_->run(request, replies, budget.left())) {
    return not_sent(std::move(fault));
  }
  const sql::stage_response& reply = replies.front();
  if (reply.error()) return not_sent(fault_of(reply.error(), reply.diag(), "prepare"));
  place = reply.get_statement();
  return {};
}

std::size_t Exchange::add(Statement statement, std::size_t size_index, const Fields& fields) {
  if (!fault_) fault_ = session_.prepare(statement, size_index, budget_);
  if (!fault_) request_.add_execute_range(session_.prepared(statement, size_index), fields);
  return size_++;
}

std::size_t Exchange::add(std::string_view text) {
  if (!fault_) request_.add_execute(text);
  return size_++;
}

Fault Exchange::run() {
  if (fault_) return fault_;
  if (!session_.usable()) {
    return {Fault::Kind::refused, true, true, fail(errc::unavailable, "the connection is gone")};
  }
  if (budget_.over()) return too_late();
  return session_.link().run(request_, replies_, budget_.left());
}

Fault Exchange::fault(std::size_t place, std::string_view what) {
  const sql::stage_response& reply = replies_[place];
  Fault fault = fault_of(reply.error(), reply.diag(), what);
  if (fault.close) session_.discard();
  return fault;
}

Fault Exchange::commit_fault(std::size_t place) {
  Fault uncommitted = fault(place, "commit");
  if (uncommitted) session_.discard();
  return uncommitted;
}

result<sql::results> query(Session& session, std::string_view text, const Fields& fields,
                           const Budget& budget) {
  const auto unapplied = [](Fault fault) {
    // What it asks for changes nothing, or may be done twice.
    if (fault.kind == Fault::Kind::broken) fault.error.code = errc::unavailable;
    return fault.error;
  };
  const auto run = [&](sql::pipeline_request& request, std::vector<sql::stage_response>& replies) {
    if (budget.over()) return too_late();
    Fault fault = session.link().run(request, replies, budget.left());
    if (!fault && replies.front().error()) {
      fault = fault_of(replies.front().error(), replies.front().diag(), "query");
      if (fault.close) session.discard();
    }
    return fault;
  };
  sql::pipeline_request request;
  std::vector<sql::stage_response> replies;
  if (fields.empty()) {
    request.add_execute(text);
    if (Fault fault = run(request, replies)) return unapplied(std::move(fault));
    return std::move(replies.front()).get_results();
  }
  request.add_prepare_statement(text);
  if (Fault fault = run(request, replies)) return unapplied(std::move(fault));
  const sql::statement statement = replies.front().get_statement();
  request.clear();
  request.add_execute_range(statement, fields).add_close_statement(statement);
  if (Fault fault = run(request, replies)) return unapplied(std::move(fault));
  return std::move(replies.front()).get_results();
}

}  // namespace idem::mysql
