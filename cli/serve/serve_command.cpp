// idem serve: the reverse proxy as a command.
#include <fmt/core.h>

#include <cstdio>

#include "../commands.hpp"
#include "../config_options.hpp"
#include "../options.hpp"
#include "idem/store_url.hpp"
#include "outage_log.hpp"
#include "server.hpp"

namespace idem::cli {

namespace {

struct ServeCommandOptions {
  ConfigOptions config;
  std::string upstream;
  std::string listen;
};

ExitCode run_serve(const ServeCommandOptions& options, Context& context) {
  std::vector<ConfigFlag> flags;
  if (!options.upstream.empty())
    flags.push_back({"serve.upstream", options.upstream, "--upstream"});
  if (!options.listen.empty()) flags.push_back({"serve.listen", options.listen, "--listen"});
  Config config = read_config(options.config, context, std::move(flags));
  if (config.serve.upstream.empty()) {
    throw Failure::usage("no upstream is named")
        .advise("idem serve --upstream http://127.0.0.1:9000");
  }
  const StoreChoice choice = configured_store(config);
  config.service.observer = std::make_shared<serve::OutageLog>(
      [](const std::string& line) { tell_user("idem serve: " + printable(line) + "\n"); });
  auto service = std::make_shared<IdempotencyService>(open_store(choice), config.service);
  auto started =
      serve::Server::start(config.serve, std::make_shared<http::Guard>(service, config.http));
  // Only the address can be unavailable: nobody was asked anything yet.
  if (!started && started.error().code == errc::unavailable) {
    throw Failure(ExitCode::usage, "cannot_listen", started.error().message)
        .advise("--listen 127.0.0.1:0 takes any free port");
  }
  const auto server = must(std::move(started));
  server->stop_on_signals();

  const std::string address = config.serve.listen.substr(0, config.serve.listen.rfind(':')) + ":" +
                              std::to_string(server->port());
  const auto url = StoreUrl::parse(choice.url);
  const std::string store = url ? url->redacted() : std::string();
  if (context.json) {
    print_document(Json{{"outcome", "listening"},
                        {"address", address},
                        {"upstream", config.serve.upstream},
                        {"store", store}});
  } else {
    print_text(fmt::format("listening on {}, before {}, keys in {}\n", address,
                           config.serve.upstream, store));
  }
  std::fflush(stdout);
  server->wait();
  service->shutdown(Micros(0));
  return ExitCode::done;
}

}  // namespace

void add_serve(CLI::App& root, Context& context) {
  auto options = std::make_shared<ServeCommandOptions>();
  CLI::App* leaf = add_leaf(
      root, context, "serve", "A reverse proxy that gives any service Idempotency-Key semantics",
      {"idem serve --upstream http://127.0.0.1:9000 --store sqlite:idem.db --listen 127.0.0.1:0",
       "idem serve --upstream http://127.0.0.1:9000 --store memory: --listen 127.0.0.1:0 --set "
       "on_duplicate=wait"});
  add_text(leaf, "--upstream", options->upstream, "the service behind: http://HOST:PORT",
           "serve.upstream");
  add_text(leaf, "--listen", options->listen, "HOST:PORT; port 0 takes any free one",
           "127.0.0.1:8080");
  add_config(leaf, options->config);
  on_run(leaf, context, options, run_serve);
}

}  // namespace idem::cli
