// `idem serve`: a reverse proxy that gives any HTTP service Idempotency-Key semantics.
//
// A few worker threads, each with an event loop of its own; a connection stays with its worker. No
// thread waits for an upstream, for a store (unless the store is in this process) or for another
// request.
#pragma once

#include <memory>

#include "idem/http.hpp"
#include "idem/serve_options.hpp"

namespace idem::serve {

class Server {
 public:
  // invalid_argument: options that make no sense. unavailable: the address cannot be listened on.
  // The guard's policy and service are the caller's; under on_5xx or on_cut = hold every claim is
  // made with on_lapsed = hold, so that a crash of the proxy does not repeat a request either.
  [[nodiscard]] static result<std::unique_ptr<Server>> start(
      const ServeOptions& options, const std::shared_ptr<http::Guard>& guard);
  ~Server();  // stop() and wait()

  [[nodiscard]] std::uint16_t port() const;

  // No new connections, idle ones are closed, running requests get `grace`. Returns at once. Thread
  // safe; idempotent.
  void stop();

  // Until all is over.
  void wait();

  // Calls stop() on SIGTERM and SIGINT, from now on.
  void stop_on_signals();

 private:
  class Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace idem::serve
