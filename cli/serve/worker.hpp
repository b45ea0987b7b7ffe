// What the connections of one worker thread share, and what all workers share.
#pragma once

#include <boost/asio/io_context.hpp>
#include <set>

#include "late_claims.hpp"
#include "metrics.hpp"
#include "router.hpp"
#include "store_calls.hpp"
#include "upstream.hpp"
#include "wait_room.hpp"

namespace idem::serve {

// Of the whole proxy. Everything in it is thread safe or constant.
struct Shared {
  ServeOptions options;
  std::shared_ptr<http::Guard> guard;
  Router router;
  std::string authority;  // of the upstream
  Metrics metrics;
  StoreCalls store;
  WaitRoom waiting;
  LateClaims late;
  CallOptions claims;  // what every claim is made with

  Shared(ServeOptions its_options, std::shared_ptr<http::Guard> its_guard,
         std::string its_authority, std::size_t store_threads);
};

class Session;

// One thread's. Everything in it is used by the thread that runs `context`.
struct Worker {
  explicit Worker(Shared& its_shared, const UpstreamOptions& options);

  Shared& shared;
  bool draining = false;
  std::set<Session*> sessions;  // before `context`, whose end ends the last of them
  boost::asio::io_context context{1};
  Upstream upstream;
};

}  // namespace idem::serve
