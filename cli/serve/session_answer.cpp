// What a request is answered: the guard's word, or the upstream's.
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/http/verb.hpp>

#include "forward.hpp"
#include "session.hpp"

namespace idem::serve {
namespace {

namespace asio = boost::asio;

bool may_have_acted(UpstreamEnd end) {
  return end == UpstreamEnd::cut || end == UpstreamEnd::timed_out;
}

// By their meaning these say that the request was not acted upon (RFC 9110, 8470, 6585).
bool surely_did_not_act(unsigned status) {
  return status == 408 || status == 425 || status == 429 || status == 503;
}

http::Response problem_of(UpstreamEnd end, bool keyed, bool held) {
  switch (end) {
    case UpstreamEnd::not_sent: {
      http::Response response =
          http::problem(502, "upstream_unreachable", "The service behind cannot be reached",
                        "Nothing was done. Send it again later.");
      response.headers.push_back({"Retry-After", "1"});
      return response;
    }
    case UpstreamEnd::too_large:
      return http::problem(502, "upstream_too_large", "The service's response is too large",
                           "The request was handled; its response cannot be shown.");
    default:
      break;
  }
  const unsigned status = end == UpstreamEnd::timed_out ? 504 : 502;
  if (!keyed) {
    return http::problem(status, "upstream_broke", "The service behind did not answer",
                         "The request may have taken effect.");
  }
  return http::problem(status, held ? "upstream_in_doubt" : "upstream_broke",
                       "The service behind did not answer",
                       held ? "The request may have taken effect; it is not repeated until its end "
                              "is found out."
                            : "Send the same request again with the same key.");
}

}  // namespace

http::BeastResponse Session::made(http::Response response,
                                  const http::BeastRequest& request) const {
  http::BeastResponse out = http::to_beast(std::move(response), request.version(),
                                           request.keep_alive() && !worker_.draining);
  if (request.method() == boost::beast::http::verb::head) out.body().clear();
  return out;
}

http::BeastRequest Session::outgoing(http::BeastRequest& request, std::uint64_t fence) const {
  return to_upstream(request, {client_, shared_.authority, fence});
}

std::optional<http::BeastResponse> Session::own_page(const http::BeastRequest& request) {
  using boost::beast::http::verb;
  if (request.method() != verb::get && request.method() != verb::head) return std::nullopt;
  std::string_view whole = http::detail::view(request.target());
  // The absolute form (RFC 9112 §3.2.2).
  if (const std::size_t authority = whole.find("://");
      !whole.starts_with('/') && authority != std::string_view::npos)
    whole.remove_prefix(std::min(whole.size(), whole.find('/', authority + 3)));
  const std::string_view target = whole.substr(0, whole.find('?'));
  const ServeOptions& options = shared_.options;
  if (!options.health_path.empty() && target == options.health_path) {
    return made({200, {{"Content-Type", "text/plain"}}, "ok\n"}, request);
  }
  if (!options.metrics_path.empty() && target == options.metrics_path) {
    return made({200,
                 {{"Content-Type", "text/plain; version=0.0.4"}},
                 shared_.metrics.text(*shared_.guard)},
                request);
  }
  return std::nullopt;
}

asio::awaitable<http::BeastResponse> Session::answer(http::BeastRequest& request) {
  if (const auto objection = objection_to(request)) {
    shared_.metrics.count(Told::refused);
    co_return made(http::problem(objection->status, objection->code, objection->title, ""),
                   request);
  }
  if (auto page = own_page(request)) co_return std::move(*page);

  const std::string_view target = path_of(http::detail::view(request.target()));
  const RouteMatch route =
      shared_.router.match(http::detail::view(request.method_string()), target);
  const auto headers = http::detail::header_views(request);
  http::RequestView asked;
  asked.method = http::detail::view(request.method_string());
  asked.target = target;
  asked.headers = headers;
  asked.body = request.body();
  asked.tenant = shared_.options.tenant;
  asked.biz_type = route.biz_type;
  asked.key = route.key;
  http::Reading reading = shared_.guard->read(asked);
  if (auto* refusal = std::get_if<http::Answer>(&reading)) {
    shared_.metrics.count(Told::answered);
    shared_.metrics.count(refusal->reason);
    co_return made(std::move(refusal->response), request);
  }
  if (const auto* keyed = std::get_if<Request>(&reading)) {
    co_return co_await answer_keyed(request, *keyed);
  }
  const http::BeastRequest out = outgoing(request, 0);
  UpstreamAnswer got = co_await worker_.upstream.send(out);
  shared_.metrics.count(Told::passed);
  if (got.end != UpstreamEnd::answered) co_return made(problem_of(got.end, false, false), request);
  co_return from_upstream(std::move(got), request);
}

asio::awaitable<http::Decision> Session::claim(const Request& keyed) {
  http::Guard& guard = *shared_.guard;
  const Policy& policy = guard.service().policy(keyed.key.biz_type);
  const Clock& clock = guard.service().clock();
  const Time deadline = clock.now() + policy.wait.micros();
  CallOptions options = shared_.claims;
  auto try_once = [&] {
    options.owner = Owner::random();
    auto claimed = guard.service().claim(keyed, options);
    const bool may_come = !claimed && claimed.error().code == errc::unknown;
    if (may_come) shared_.late.watch(keyed.key, *options.owner);
    return guard.decide(keyed, std::move(claimed));
  };
  for (bool waited = false;; waited = true) {
    http::Decision decision = co_await shared_.store.run(try_once);
    const auto* other = std::get_if<http::Answer>(&decision);
    const bool waits = policy.on_duplicate == OnDuplicate::wait && other != nullptr &&
                       other->reason == http::Reason::in_progress && !worker_.draining;
    if (!waits || clock.now() >= deadline) co_return decision;
    if (!waited) shared_.metrics.count_waited();
    co_await shared_.waiting.wait(keyed, deadline);
  }
}

asio::awaitable<http::BeastResponse> Session::answer_keyed(http::BeastRequest& request,
                                                           const Request& keyed) {
  http::Decision decision = co_await claim(keyed);
  if (auto* instead = std::get_if<http::Answer>(&decision)) {
    shared_.metrics.count(Told::answered);
    shared_.metrics.count(instead->reason);
    co_return made(std::move(instead->response), request);
  }
  http::Exchange exchange = std::move(std::get<http::Proceed>(decision).exchange);
  const http::BeastRequest out = outgoing(request, exchange.fence());
  UpstreamAnswer got = co_await worker_.upstream.send(out);
  shared_.metrics.count(Told::executed);
  co_return co_await report(request, std::move(exchange), std::move(got));
}

asio::awaitable<http::BeastResponse> Session::report(const http::BeastRequest& request,
                                                     http::Exchange exchange, UpstreamAnswer got) {
  http::Guard& guard = *shared_.guard;
  const Key key = exchange.request().key;
  const unsigned status = got.response.result_int();
  const bool in_doubt = may_have_acted(got.end);
  const bool doubtful_5xx =
      got.end == UpstreamEnd::answered && status >= 500 && !surely_did_not_act(status);
  const bool hold = (in_doubt && shared_.options.on_cut == OnDoubt::hold) ||
                    (doubtful_5xx && shared_.options.on_5xx == OnDoubt::hold);
  if (hold) {
    auto held = [&] {
      guard.hold(std::move(exchange));
      return true;
    };
    (void)co_await shared_.store.run(held);
  } else if (got.end == UpstreamEnd::not_sent) {
    auto released = [&] {
      guard.release(std::move(exchange));
      return true;
    };
    (void)co_await shared_.store.run(released);
  } else if (in_doubt) {
    auto failed = [&] {
      guard.fail(std::move(exchange), "the upstream's answer was cut off");
      return true;
    };
    (void)co_await shared_.store.run(failed);
  } else {
    auto response = co_await finish(request, std::move(exchange), std::move(got));
    shared_.waiting.call(key);
    co_return response;
  }
  shared_.waiting.call(key);
  if (got.end == UpstreamEnd::answered) co_return from_upstream(std::move(got), request);
  co_return made(problem_of(got.end, true, hold), request);
}

asio::awaitable<http::BeastResponse> Session::finish(const http::BeastRequest& request,
                                                     http::Exchange exchange, UpstreamAnswer got) {
  const auto headers = http::detail::header_views(got.response);
  const http::ResponseView view{got.response.result_int(), headers, got.response.body(),
                                got.end == UpstreamEnd::answered};
  auto finished = [&] { return shared_.guard->finish(std::move(exchange), view); };
  http::Finished done = co_await shared_.store.run(finished);
  if (done.instead) co_return made(std::move(*done.instead), request);
  http::BeastResponse response = got.end == UpstreamEnd::too_large
                                     ? made(problem_of(got.end, true, false), request)
                                     : from_upstream(std::move(got), request);
  for (const http::Header& header : done.add) response.set(header.name, header.value);
  co_return response;
}

http::BeastResponse Session::from_upstream(UpstreamAnswer answer,
                                           const http::BeastRequest& request) {
  http::BeastResponse response = std::move(answer.response);
  // A replay is our word to give, not the upstream's.
  response.erase(shared_.guard->policy().replayed_header);
  to_client(response, request.version(), request.keep_alive() && !worker_.draining,
            request.method() == boost::beast::http::verb::head);
  return response;
}

}  // namespace idem::serve
