// A unit of work in a transaction, run again when the server undoes it.
#include <boost/mysql/any_connection.hpp>
#include <boost/mysql/results.hpp>
#include <boost/system/system_error.hpp>

#include "errors.hpp"
#include "idem/mysql_transaction.hpp"

namespace idem {
namespace {

using mysql::Fault;

Fault run(boost::mysql::any_connection& connection, std::string_view text) {
  boost::mysql::error_code code;
  boost::mysql::diagnostics server_said;
  boost::mysql::results answer;
  connection.execute(text, answer, code, server_said);
  return mysql::fault_of(code, server_said, text);
}

// Ends the transaction when the unit did not, however it ended.
class Rollback {
 public:
  explicit Rollback(boost::mysql::any_connection& connection) : connection_(connection) {}
  ~Rollback() {
    // A connection on which this fails is gone, and its transaction with it.
    if (armed_) (void)run(connection_, "ROLLBACK");
  }
  Rollback(const Rollback&) = delete;
  Rollback& operator=(const Rollback&) = delete;
  void disarm() { armed_ = false; }

 private:
  boost::mysql::any_connection& connection_;
  bool armed_ = true;
};

result<void> begin(boost::mysql::any_connection& connection) {
  for (const std::string_view text : {"BEGIN", "SAVEPOINT idem_unit"}) {
    if (Fault fault = run(connection, text)) {
      if (fault.error.code == errc::unknown) fault.error.code = errc::unavailable;
      return fault.error;
    }
  }
  return {};
}

// The savepoint tells whether the transaction is still the one that was begun: a unit that
// overlooks a deadlock ends with statements outside of it.
result<bool> commit(boost::mysql::any_connection& connection) {
  if (Fault fault = run(connection, "RELEASE SAVEPOINT idem_unit")) {
    const bool gone = fault.kind == Fault::Kind::broken;
    return fail(gone ? errc::unavailable : errc::busy,
                "the transaction ended before its unit did: " + fault.error.message);
  }
  if (Fault fault = run(connection, "COMMIT")) {
    if (fault.kind != Fault::Kind::again) fault.error.code = errc::unknown;
    return fault.error;
  }
  return true;
}

result<bool> run_once(boost::mysql::any_connection& connection,
                      const std::function<result<bool>()>& unit) {
  Rollback rollback(connection);
  if (auto begun = begin(connection); !begun) return begun.error();
  try {
    auto wanted = unit();
    if (!wanted || !*wanted) return wanted;
  } catch (const boost::system::system_error& error) {
    Fault fault = mysql::fault_of(error.code(), {}, "unit");
    if (fault.error.code != errc::busy) throw;
    return fault.error;
  }
  auto done = commit(connection);
  if (done) rollback.disarm();
  return done;
}

}  // namespace

result<bool> mysql_transact(boost::mysql::any_connection& connection,
                            const std::function<result<bool>()>& unit) {
  for (int runs = 1;; ++runs) {
    auto done = run_once(connection, unit);
    const bool undone = !done && done.error().code == errc::busy;
    if (!undone || runs == kMysqlUnitRuns) return done;
  }
}

Error mysql_error(const boost::system::error_code& code,
                  const boost::mysql::diagnostics& server_said) {
  Fault fault = mysql::fault_of(code, server_said, "statement");
  // An error that means nothing to us is the business's own: a duplicate of its keys, say.
  if (fault.error.code == errc::internal) fault.error.code = errc::invalid_argument;
  return fault.error;
}

}  // namespace idem
