// What `idem serve` may be told. Plain values; config.hpp fills them in.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "idem/http_policy.hpp"
#include "idem/time.hpp"

namespace idem {

// What becomes of a keyed request whose upstream may have acted without saying what it did.
enum class OnDoubt : std::uint8_t {
  hold,   // the record stays processing, then InDoubt: nobody runs it again by itself
  retry,  // failed, may be retried: the next request with the key is sent upstream
};

struct Route {
  std::string method = "*";  // compared with case; "*": any
  // "/orders/*/pay": "*" stands for one segment, a last "/**" for any rest.
  std::string path = "/**";
  http::KeyUse key = http::KeyUse::required;
  std::string biz_type;
};

struct ServeOptions {
  std::string listen = "127.0.0.1:8080";  // HOST:PORT; port 0: any free one
  std::string upstream;                   // "http://HOST:PORT"
  std::string tenant;                     // of every request: one service, one tenant
  std::vector<Route> routes;  // the first that matches; none: POST and PATCH by http::Policy::key,
                              // every other method off
  OnDoubt on_5xx = OnDoubt::hold;  // upstream said 5xx; 503 is always retry: it did not act
  OnDoubt on_cut = OnDoubt::hold;  // the connection broke, or time ran out, after the request left
  std::string health_path = "/healthz";                        // empty: none
  std::string metrics_path = "/metrics";                       // empty: none
  std::uint64_t request_bytes_max = std::uint64_t{1} << 20;    // of a body; more: 413
  std::uint64_t response_bytes_max = std::uint64_t{16} << 20;  // of an upstream's body; more: 502
  std::uint64_t header_bytes_max = std::uint64_t{8} << 10;     // of a request's head; more: 431
  std::uint64_t connections_max = 1024;                        // more are told 503 and closed
  std::uint64_t threads = 2;                                   // that move bytes
  std::uint64_t store_threads = 4;  // that wait for the store, unless it is in this process
  Duration header_time = std::chrono::seconds(5);     // for a request's head to arrive
  Duration body_time = std::chrono::seconds(30);      // for its body
  Duration idle_time = std::chrono::seconds(30);      // between two requests of a connection
  Duration upstream_time = std::chrono::seconds(60);  // from the request's first byte to the last
                                                      // of the response
  Duration connect_time = std::chrono::seconds(3);
  Duration grace = std::chrono::seconds(10);  // for what runs, after SIGTERM
  Duration sweep_every = std::chrono::seconds(30);
};

}  // namespace idem
