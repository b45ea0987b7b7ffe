// Claims (and completes) new keys for ever, and prints each key once that was acknowledged. Tests
// kill it, or its server, at moments of their choice.
//
//   redis_claimer URL KEY_PREFIX claim|complete
#include <cstdio>
#include <string>

#include "redis_servers.hpp"

int main(int argc, char** argv) {
  using namespace idem;
  if (argc != 4) return 2;
  const auto store = idem::testing::open_redis(argv[1]);
  if (!store) {
    std::fprintf(stderr, "%s\n", store.error().message.c_str());
    return 4;
  }
  IdempotencyService service(*store);
  const bool completes = std::string(argv[3]) == "complete";
  for (int i = 0;; ++i) {
    const std::string key = argv[2] + std::to_string(i);
    auto outcome = service.claim(idem::testing::request(key));
    if (!outcome || !std::holds_alternative<Claimed>(*outcome)) continue;
    if (completes) {
      const auto done = service.complete(std::get<Claimed>(*outcome).lease, "result of " + key);
      if (!done || !std::holds_alternative<Completed>(*done)) continue;
    }
    std::printf("%s\n", key.c_str());
    std::fflush(stdout);
  }
}
