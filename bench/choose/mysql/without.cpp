// A build without the MySQL backend.
#include "choose/private_mysql.hpp"

namespace idem::bench {

result<Fixture> private_mysql(Durability, const OpenOptions&) {
  return fail(errc::unsupported, "this build has no backend 'mysql'");
}

}  // namespace idem::bench
