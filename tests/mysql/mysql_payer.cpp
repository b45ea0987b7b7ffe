// Pays for requests in one transaction with their records, until it is killed.
//   mysql_payer SOCKET DATABASE FIRST     keys FIRST, FIRST + 1 ...; says "ready" when it begins
#include <cstdio>
#include <cstdlib>

#include "caller.hpp"
#include "idem/mysql_transaction.hpp"

int main(int argc, char** argv) {
  using namespace idem;              // NOLINT
  using namespace idem::mysql_test;  // NOLINT
  if (argc != 4) return 2;
  try {
    Caller caller(argv[1], argv[2]);
    auto store = mysql_in_transaction(caller.connection());
    if (!store) {
      std::fprintf(stderr, "%s\n", store.error().message.c_str());
      return 1;
    }
    IdempotencyService service(*store);
    std::printf("ready\n");
    std::fflush(stdout);
    for (long key = std::atol(argv[3]);; ++key)
      (void)caller.pay(service, request("pay-" + std::to_string(key)));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
