#include "connection.hpp"

#include <algorithm>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/mysql/is_fatal_error.hpp>
#include <chrono>

#include "idem/mysql_transaction.hpp"

namespace idem::mysql {
namespace {

namespace asio = boost::asio;
namespace sql = boost::mysql;

// Larger than any packet of ours: a result, and what surrounds it.
constexpr std::size_t kBufferBytesMax = kMysqlResultBytesMax + (std::size_t{1} << 20);

// How long a cancelled operation may take to say so.
constexpr Micros kCancelLimit = std::chrono::milliseconds(100);

sql::ssl_mode mode_of(MysqlOptions::Tls tls) {
  switch (tls) {
    case MysqlOptions::Tls::disable:
      return sql::ssl_mode::disable;
    case MysqlOptions::Tls::enable:
      return sql::ssl_mode::enable;
    case MysqlOptions::Tls::require:
    case MysqlOptions::Tls::verify:
      return sql::ssl_mode::require;
  }
  return sql::ssl_mode::require;
}

sql::any_connection_params connection_params(asio::ssl::context* tls) {
  sql::any_connection_params params;
  params.ssl_context = tls;
  params.max_buffer_size = kBufferBytesMax;
  return params;
}

}  // namespace

Connection::Connection(const MysqlOptions& options, asio::ssl::context* tls)
    : params_(mysql_connect_params(options)), connection_(loop_, connection_params(tls)) {}

template <class Start>
std::optional<sql::error_code> Connection::await(Micros limit, Start start) {
  done_.reset();
  start(
      asio::bind_cancellation_slot(cancel_.slot(), [this](sql::error_code code) { done_ = code; }));
  loop_.restart();
  loop_.run_for(std::max(limit, Micros(0)));
  if (!done_) {
    usable_ = false;
    cancel_.emit(asio::cancellation_type::terminal);
    loop_.run_for(kCancelLimit);
    return std::nullopt;
  }
  return done_;
}

result<void> Connection::connect(const MysqlOptions& options, Micros limit) {
  const auto code = await(limit, [&](auto handler) {
    connection_.async_connect(params_, diagnostics_, std::move(handler));
  });
  if (!code) {
    return fail(errc::unavailable, "cannot connect to " + where(options) + ": no answer within " +
                                       format_duration(limit));
  }
  if (*code) return connect_error(*code, diagnostics_, where(options));
  usable_ = true;
  return {};
}

Fault Connection::run(const sql::pipeline_request& request,
                      std::vector<sql::stage_response>& replies, Micros limit) {
  const auto code = await(limit, [&](auto handler) {
    connection_.async_run_pipeline(request, replies, diagnostics_, std::move(handler));
  });
  if (!code) return no_reply("statement");
  return end_of_run(*code, replies, diagnostics_);
}

Fault BorrowedLink::run(const sql::pipeline_request& request,
                        std::vector<sql::stage_response>& replies, Micros) {
  sql::error_code code;
  sql::diagnostics server_said;
  connection_.run_pipeline(request, replies, code, server_said);
  return end_of_run(code, replies, server_said);
}

Fault Link::end_of_run(const sql::error_code& code, const std::vector<sql::stage_response>& replies,
                       const sql::diagnostics& server_said) {
  if (!code) return {};
  bool told = false;  // the error is that of a stage which got its reply
  for (const sql::stage_response& reply : replies) {
    if (!reply.error()) continue;
    told = !sql::is_fatal_error(reply.error());
    if (!told) break;
  }
  if (told) return {};
  usable_ = false;
  Fault fault = fault_of(code, server_said, "statement");
  fault.kind = Fault::Kind::broken;
  fault.error.code = errc::unknown;
  return fault;
}

bool Connection::alive(Micros limit) {
  const auto code =
      await(limit, [&](auto handler) { connection_.async_ping(diagnostics_, std::move(handler)); });
  usable_ = code && !*code;
  return usable_;
}

void Connection::close(Micros limit) {
  if (!usable_) return;
  usable_ = false;
  (void)await(limit,
              [&](auto handler) { connection_.async_close(diagnostics_, std::move(handler)); });
}

result<std::unique_ptr<asio::ssl::context>> tls_context(const MysqlOptions& options) {
  auto context = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_client);
  if (options.tls != MysqlOptions::Tls::verify) return context;
  boost::system::error_code code;
  if (options.ca.empty()) {
    context->set_default_verify_paths(code);
  } else {
    context->load_verify_file(options.ca, code);
  }
  if (code) {
    return fail(errc::cannot_open,
                "cannot read certificate authorities from '" + options.ca + "': " + code.message());
  }
  context->set_verify_mode(asio::ssl::verify_peer | asio::ssl::verify_fail_if_no_peer_cert);
  context->set_verify_callback(asio::ssl::host_name_verification(options.host));
  return context;
}

std::string where(const MysqlOptions& options) {
  const std::string server =
      options.socket.empty() ? options.host + ":" + std::to_string(options.port) : options.socket;
  return server + " (database '" + options.database + "')";
}

}  // namespace idem::mysql

boost::mysql::connect_params idem::mysql_connect_params(const MysqlOptions& options) {
  boost::mysql::connect_params params;
  if (options.socket.empty()) {
    params.server_address.emplace_host_and_port(options.host, options.port);
  } else {
    params.server_address.emplace_unix_path(options.socket);
  }
  params.username = options.user;
  params.password = options.password;
  params.database = options.database;
  params.ssl = mysql::mode_of(options.tls);
  params.multi_queries = false;
  return params;
}
