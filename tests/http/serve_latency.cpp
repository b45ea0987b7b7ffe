// What `idem serve` adds to a request: the same requests straight to an upstream and through the
// proxy, in turns, in one process on one machine.
//
//   serve_latency [REQUESTS [ROUNDS]]   per round p50 and p99 of both; the median of what was
//   added,
//                                       its least and its most, over the rounds
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "idem/clock.hpp"
#include "idem/open.hpp"
#include "server.hpp"
#include "tiny_http.hpp"

namespace {

using namespace idem;

Micros timed(http::TinyClient& client, const http::BeastRequest& request) {
  const Time before = system_clock().now();
  const auto response = client.ask(request);
  const Micros took = system_clock().now() - before;
  if (!response || response->result_int() != 201) {
    std::fprintf(stderr, "serve_latency: status %u instead of 201\n",
                 response ? response->result_int() : 0);
    std::exit(1);
  }
  return took;
}

long long share(std::vector<Micros>& sorted, double of) {
  const auto place = static_cast<std::size_t>(of * static_cast<double>(sorted.size() - 1));
  return static_cast<long long>(sorted[place].count());
}

}  // namespace

int main(int argc, char** argv) {
  const int requests = std::max(1, argc > 1 ? std::atoi(argv[1]) : 2000);
  const int rounds = std::max(1, argc > 2 ? std::atoi(argv[2]) : 7);
  http::TinyServer upstream([](const http::BeastRequest&) { return http::reply(201, "done"); });
  ServeOptions options;
  options.listen = "127.0.0.1:0";
  options.upstream = "http://127.0.0.1:" + std::to_string(upstream.port());
  const auto guard = std::make_shared<http::Guard>(
      std::make_shared<IdempotencyService>(open("memory:").value()), http::Policy());
  const auto server = serve::Server::start(options, guard).value();
  http::TinyClient straight(upstream.port());
  http::TinyClient through(server->port());

  std::vector<Micros> added;
  for (int round = 0; round <= rounds; ++round) {  // the first one warms up
    std::vector<Micros> alone;
    std::vector<Micros> proxied;
    for (int i = 0; i < requests; ++i) {
      const auto request = http::post("/pay", std::to_string(round) + "-" + std::to_string(i), "b");
      alone.push_back(timed(straight, request));
      proxied.push_back(timed(through, request));
    }
    std::sort(alone.begin(), alone.end());
    std::sort(proxied.begin(), proxied.end());
    if (round == 0) continue;
    added.emplace_back(share(proxied, 0.5) - share(alone, 0.5));
    std::printf(
        "round %d: upstream alone p50 %lld p99 %lld us, through idem serve (memory:) p50 %lld "
        "p99 %lld us\n",
        round, share(alone, 0.5), share(alone, 0.99), share(proxied, 0.5), share(proxied, 0.99));
  }
  std::sort(added.begin(), added.end());
  std::printf("added to p50: median %lld us, least %lld, most %lld over %d rounds of %d requests\n",
              share(added, 0.5), share(added, 0), share(added, 1), rounds, requests);
}
