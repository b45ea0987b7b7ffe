#include "errors.hpp"

#include <boost/mysql/client_errc.hpp>
#include <boost/mysql/error_categories.hpp>
#include <boost/mysql/is_fatal_error.hpp>

namespace idem::mysql {
namespace {

using Kind = Fault::Kind;

// The number of a server's error; 0: the error is not the server's.
int server_number(const boost::mysql::error_code& code) {
  const auto& category = code.category();
  const bool servers = category == boost::mysql::get_common_server_category() ||
                       category == boost::mysql::get_mysql_server_category() ||
                       category == boost::mysql::get_mariadb_server_category();
  return servers ? code.value() : 0;
}

struct Meaning {
  Kind kind = Kind::refused;
  errc code = errc::internal;
  bool close = false;
  const char* remedy = "";
};

// The numbers are those of both servers; where only one has it, the other never sends it.
Meaning meaning_of(int number) {
  switch (number) {
    case 1062:  // duplicate entry
      return {Kind::duplicate};
    case 1213:  // deadlock
    case 1020:  // record changed since last read
      return {Kind::again, errc::busy};
    case 1205:  // lock wait timeout
    case 3572:  // NOWAIT
      return {Kind::waited, errc::busy};
    case 1053:  // shutdown in progress
    case 1158:  // network read error
    case 1159:
    case 1160:
    case 1161:
    case 1180:  // error during commit
    case 1317:  // query interrupted
    case 1927:  // connection killed
    case 1969:  // max_statement_time
    case 3024:  // max_execution_time
      return {Kind::broken, errc::unknown, true};
    case 1290:  // running with --read-only
    case 1792:  // read only transaction
    case 1836:  // read only mode
      return {Kind::refused, errc::unavailable, true, "; the server takes no writes now"};
    case 1040:  // too many connections
    case 1129:  // host blocked
    case 1203:  // too many connections of this user
    case 1226:  // resource limit of this user
      return {Kind::refused, errc::unavailable, true};
    case 1044:
    case 1045:
    case 1130:
    case 1142:
    case 1143:
    case 1227:
    case 1370:
    case 1698:
      return {Kind::refused, errc::denied};
    case 1049:  // unknown database
    case 1054:  // unknown column
    case 1146:  // no such table
    case 1264:  // out of range for a column
    case 1366:  // incorrect value for a column
    case 1406:  // too long for a column
    case 1665:  // binlog_format STATEMENT
      return {Kind::refused, errc::cannot_open};
    case 167:   // out of range (auto increment used up)
    case 1021:  // disk full
    case 1038:  // out of sort memory
    case 1041:  // out of resources
    case 1114:  // table full
    case 1206:  // lock table full
    case 1467:  // no auto increment value left
      return {Kind::refused, errc::capacity};
    case 1153:  // packet too large
      return {Kind::refused, errc::too_large, true};
    default:
      return {};
  }
}

std::string said(const boost::mysql::error_code& code,
                 const boost::mysql::diagnostics& server_said) {
  std::string text(server_said.server_message());
  if (text.empty()) text = code.message();
  if (const int number = server_number(code)) text += " (error " + std::to_string(number) + ")";
  return text;
}

}  // namespace

Fault fault_of(const boost::mysql::error_code& code, const boost::mysql::diagnostics& server_said,
               std::string_view what) {
  if (!code) return {};
  const int number = server_number(code);
  const bool fatal = boost::mysql::is_fatal_error(code);
  Meaning meaning =
      number != 0 ? meaning_of(number) : Meaning{Kind::broken, errc::unknown, true, ""};
  // A fatal error we have no better word for: the connection's state cannot be trusted.
  if (fatal && meaning.code == errc::internal) meaning = {Kind::broken, errc::unknown, true, ""};
  return {meaning.kind, meaning.close || fatal, false,
          fail(meaning.code,
               std::string(what) + ": " + said(code, server_said) + std::string(meaning.remedy))};
}

Error connect_error(const boost::mysql::error_code& code,
                    const boost::mysql::diagnostics& server_said, std::string_view where) {
  const int number = server_number(code);
  errc meaning = errc::unavailable;
  if (number != 0) {
    const Meaning known = meaning_of(number);
    if (known.code == errc::denied || known.code == errc::cannot_open) meaning = known.code;
  }
  std::string hint;
  if (code == boost::mysql::client_errc::auth_plugin_requires_ssl) {
    meaning = errc::denied;
    hint = "; this user's authentication needs TLS: add tls=require (or tls=verify)";
  } else if (code == boost::mysql::client_errc::server_doesnt_support_ssl ||
             code == boost::mysql::client_errc::unknown_auth_plugin ||
             code == boost::mysql::client_errc::server_unsupported) {
    meaning = errc::cannot_open;
  } else if (std::string_view(code.category().name()) == "asio.ssl") {
    meaning = errc::cannot_open;
    hint = "; is this the right certificate authority (ca=FILE) and host name?";
  }
  return fail(meaning,
              "cannot connect to " + std::string(where) + ": " + said(code, server_said) + hint);
}

Fault no_reply(std::string_view what) {
  return {Kind::broken, true, false,
          fail(errc::unknown, std::string(what) + ": no reply within the deadline")};
}

}  // namespace idem::mysql
