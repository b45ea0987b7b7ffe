// `idem serve` in this process, before an upstream that does what the test says.
#pragma once

#include <gtest/gtest.h>

#include <latch>
#include <map>

#include "idem/testing/fault_store.hpp"
#include "idem/testing/reference_store.hpp"
#include "server.hpp"
#include "tiny_http.hpp"

namespace idem::serve {

using namespace std::chrono_literals;  // NOLINT: tests
using http::BeastRequest;
using http::BeastResponse;
using http::fetch;
using http::post;
using http::reply;
using http::TinyClient;
using http::TinyServer;

class ServeTest : public ::testing::Test {
 protected:
  // What the upstream does; counts how often each body was acted upon.
  TinyServer::Handler act = [](const BeastRequest&) { return reply(201, "done"); };
  std::mutex mutex;
  std::map<std::string, int> runs;
  std::vector<BeastRequest> seen;
  std::latch running{1}, go_on{1};  // of hold_upstream(); they outlive the upstream's threads
  TinyServer upstream{[this](const BeastRequest& request) {
    {
      const std::lock_guard lock(mutex);
      ++runs[request.body()];
      seen.push_back(request);
    }
    return act(request);
  }};
  std::shared_ptr<testing::ReferenceStore> store =
      std::make_shared<testing::ReferenceStore>(system_clock());
  // Before it, and of use to who wants something to go wrong.
  std::shared_ptr<testing::FaultStore> faults =
      std::make_shared<testing::FaultStore>(store, system_clock());
  ServiceOptions service_options;
  ServeOptions options;
  http::Policy policy;
  std::shared_ptr<http::Guard> guard;
  std::unique_ptr<Server> server;

  void TearDown() override {
    if (!go_on.try_wait()) go_on.count_down();
  }

  // The upstream's only run says that it is running, and does not answer before `go_on`.
  void hold_upstream(std::string_view body = "done") {
    act = [this, body](const BeastRequest&) {
      running.count_down();
      go_on.wait();
      return reply(201, body);
    };
  }

  std::uint16_t start() {
    options.listen = "127.0.0.1:0";
    options.upstream = "http://127.0.0.1:" + std::to_string(upstream.port());
    guard = std::make_shared<http::Guard>(
        std::make_shared<IdempotencyService>(faults, service_options), policy);
    auto started = Server::start(options, guard);
    if (!started) throw std::runtime_error(started.error().message);
    server = std::move(*started);
    return server->port();
  }
  static std::string code(const BeastResponse& response) {
    const std::size_t at = response.body().find("\"code\":\"");
    if (at == std::string::npos) return "(none)";
    return response.body().substr(at + 8, response.body().find('"', at + 8) - at - 8);
  }
  int total_runs() {
    const std::lock_guard lock(mutex);
    int total = 0;
    for (const auto& [body, count] : runs) total += count;
    return total;
  }
};

}  // namespace idem::serve
