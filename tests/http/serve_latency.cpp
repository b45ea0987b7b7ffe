// What `idem serve` adds to a request: the same requests straight to an upstream and through the
// proxy, in turns, in one process on one machine.
//
//   serve_latency [REQUESTS]      prints p50 and p99 of both, and the differences
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
  const int requests = argc > 1 ? std::atoi(argv[1]) : 5000;
  http::TinyServer upstream([](const http::BeastRequest&) { return http::reply(201, "done"); });
  ServeOptions options;
  options.listen = "127.0.0.1:0";
  options.upstream = "http://127.0.0.1:" + std::to_string(upstream.port());
  const auto guard = std::make_shared<http::Guard>(
      std::make_shared<IdempotencyService>(open("memory:").value()), http::Policy());
  const auto server = serve::Server::start(options, guard).value();
  http::TinyClient straight(upstream.port());
  http::TinyClient through(server->port());

  std::vector<Micros> alone;
  std::vector<Micros> proxied;
  const int warm = requests / 10;
  for (int i = 0; i < warm + requests; ++i) {
    const auto request = http::post("/pay", "k" + std::to_string(i), "body");
    const Micros a = timed(straight, request);
    const Micros b = timed(through, request);
    if (i < warm) continue;
    alone.push_back(a);
    proxied.push_back(b);
  }
  std::sort(alone.begin(), alone.end());
  std::sort(proxied.begin(), proxied.end());
  for (const double of : {0.5, 0.99}) {
    const auto a = share(alone, of);
    const auto b = share(proxied, of);
    std::printf(
        "p%-4g upstream alone %lld us, through idem serve (memory:) %lld us, added %lld us\n",
        of * 100, a, b, b - a);
  }
}
