// The MySQL store inside a transaction of the caller's own: the record lasts if and only if the
// business does.
//
//   auto store = idem::mysql_in_transaction(connection).value();
//   idem::IdempotencyService service(store);
//   auto done = idem::mysql_transact(connection, [&]() -> idem::result<bool> {
//     auto claimed = service.claim(request);
//     if (!claimed) return claimed.error();
//     auto* mine = std::get_if<idem::Claimed>(&*claimed);
//     if (mine == nullptr) return false;  // Replay, InProgress ...: nothing to commit
//     connection.execute("INSERT INTO payment ...", answer);
//     auto completed = service.complete(mine->lease, "paid");
//     if (!completed) return completed.error();
//     return true;
//   });
#pragma once

#include <boost/system/error_code.hpp>
#include <functional>
#include <string>

#include "idem/clock.hpp"
#include "idem/mysql_store.hpp"
#include "idem/store.hpp"
#include "idem/time.hpp"

namespace boost::mysql {
class any_connection;
class diagnostics;
struct connect_params;
}  // namespace boost::mysql

namespace idem {

// For a connection of the caller's own to the store's database. Whom Tls::verify trusts is up to
// the connection's own TLS context.
[[nodiscard]] boost::mysql::connect_params mysql_connect_params(const MysqlOptions& options);

struct MysqlTransactionOptions {
  std::string table = "idempotent_record";
  // How long a claim waits for another transaction that holds its key, in whole seconds from 1 s on
  // (the servers know no shorter ones). Only of our statements; the caller's keep the session's.
  Duration row_wait = std::chrono::seconds(1);
  Clock* clock = nullptr;  // nullptr: system_clock(). A virtual clock stands in for the server's
};

// Borrows the connection; used by one thread at a time, as that is, and through the connection's
// blocking calls: nothing else may be under way on it. Keep the store as long as the connection,
// over many transactions; make another one after a reset_connection(). Each call takes two round
// trips.
//
// Others see nothing before the commit; their claims of the key wait for it. A claim that found a
// record holds that record until the transaction's end: end it soon, or its owner's complete waits.
//
// Needs a transaction under way (else invalid_argument, and nothing is done). READ COMMITTED and
// REPEATABLE READ are respected: decisions are made on the newest committed record, never on the
// transaction's snapshot. Other levels are refused, and so is a sql_mode that is not strict.
//
// busy  a deadlock, or a wait of more than row_wait: the transaction was rolled back, with all that
//       the caller did in it, and a read-only one was begun in its place, so that a caller who
//       overlooks the error writes nothing (error 1792). Run the whole unit again, as
//       mysql_transact() does.
// unsupported  remove (the service's release) and sweep: roll back instead, or use another
//              connection; they would hold up everybody's until the commit
// Under REPEATABLE READ a server's clock that steps back between the transaction's begin and its
// claim can make a fence repeat.
[[nodiscard]] result<StorePtr> mysql_in_transaction(boost::mysql::any_connection& connection,
                                                    const MysqlTransactionOptions& options = {});

// How often a unit is run that a deadlock or a wait for a row undoes.
inline constexpr int kMysqlUnitRuns = 10;

// Runs `unit` in a transaction of its own: BEGIN, unit(), and COMMIT if it answers true, else
// ROLLBACK. After errc::busy, or an exception of Boost.MySQL that carries error 1213, 1205 or 1020,
// the whole is rolled back and run again, kMysqlUnitRuns times in all. An error of the unit is
// answered, another exception rethrown, after the rollback. True: committed.
//
// busy     undone every time; nothing was committed
// unknown  the connection was lost at COMMIT: run the unit again on another one; it finds its own
//          result if it was committed
[[nodiscard]] result<bool> mysql_transact(boost::mysql::any_connection& connection,
                                          const std::function<result<bool>()>& unit);

// The meaning of a statement's error, to be answered by a unit: busy if it is to be run again.
[[nodiscard]] Error mysql_error(const boost::system::error_code& code,
                                const boost::mysql::diagnostics& server_said);

}  // namespace idem
