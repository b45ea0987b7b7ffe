// What `idem serve` adds to a request: the same requests straight to an upstream, through a relay
// that only copies bytes, and through the proxy, in turns, in one process on one machine. What the
// relay adds is what any program between the two adds: the way of the bytes and two more wake-ups.
//
//   serve_latency [REQUESTS [ROUNDS]]   per round p50 and p99 of each; the median of what relay and
//                                       proxy added, its least and its most, over the rounds
#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "idem/clock.hpp"
#include "idem/open.hpp"
#include "server.hpp"
#include "tiny_http.hpp"

namespace {

using namespace idem;
namespace asio = boost::asio;
using asio::ip::tcp;

// Copies what one client sends to the upstream, and each answer back. Both fit into one read.
class Relay {
 public:
  explicit Relay(std::uint16_t upstream)
      : acceptor_(context_, {asio::ip::address_v4::loopback(), 0}),
        thread_([this, upstream] { copy(upstream); }) {}
  ~Relay() { thread_.join(); }  // once its client has gone
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;
  [[nodiscard]] std::uint16_t port() const { return acceptor_.local_endpoint().port(); }

 private:
  void copy(std::uint16_t upstream) {
    tcp::socket client = acceptor_.accept();
    tcp::socket server(context_);
    server.connect({asio::ip::address_v4::loopback(), upstream});
    for (tcp::socket* socket : {&client, &server}) socket->set_option(tcp::no_delay(true));
    while (copy_one(client, server) && copy_one(server, client)) {
    }
  }
  static bool copy_one(tcp::socket& from, tcp::socket& to) {
    std::array<char, 4096> bytes;
    boost::system::error_code ec;
    const std::size_t count = from.read_some(asio::buffer(bytes), ec);
    if (!ec) asio::write(to, asio::buffer(bytes.data(), count), ec);
    return !ec;
  }

  asio::io_context context_;
  tcp::acceptor acceptor_;
  std::thread thread_;
};

struct Way {
  const char* name;
  http::TinyClient client;
  std::vector<Micros> took{};   // in this round
  std::vector<Micros> added{};  // to the upstream's p50, by round
};

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
  const Relay relay(upstream.port());
  std::array<Way, 3> ways{Way{"upstream alone", http::TinyClient(upstream.port())},
                          Way{"through a relay", http::TinyClient(relay.port())},
                          Way{"through idem serve (memory:)", http::TinyClient(server->port())}};
  for (int round = 0; round <= rounds; ++round) {  // the first one warms up
    for (Way& way : ways) way.took.clear();
    for (int i = 0; i < requests; ++i) {
      const auto request = http::post("/pay", std::to_string(round) + "-" + std::to_string(i), "b");
      for (Way& way : ways) way.took.push_back(timed(way.client, request));
    }
    for (Way& way : ways) std::sort(way.took.begin(), way.took.end());
    if (round == 0) continue;
    std::printf("round %d:", round);
    for (Way& way : ways) {
      way.added.emplace_back(share(way.took, 0.5) - share(ways[0].took, 0.5));
      std::printf(" %s p50 %lld p99 %lld us%s", way.name, share(way.took, 0.5),
                  share(way.took, 0.99), &way == &ways.back() ? "\n" : ",");
    }
  }
  for (Way& way : ways) {
    if (&way == &ways[0]) continue;
    std::sort(way.added.begin(), way.added.end());
    std::printf("%s: added to p50: median %lld us, least %lld, most %lld over %d rounds of %d\n",
                way.name, share(way.added, 0.5), share(way.added, 0), share(way.added, 1), rounds,
                requests);
  }
}
