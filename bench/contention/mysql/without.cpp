// A build without the MySQL backend.
#include "contention/contender.hpp"

namespace idem::bench {

std::vector<Contender> mysql_transaction(const Place&, Clock&) { return {}; }

}  // namespace idem::bench
