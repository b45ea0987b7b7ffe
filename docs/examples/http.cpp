// Idempotency-Key semantics in a server of one's own: the guard before the handler and behind it.
#include "idem/http.hpp"

#include <cstdio>

#include "idem/open.hpp"

namespace {

int payments = 0;

idem::http::Response pay(std::string_view) {
  return {
      201, {{"Content-Type", "application/json"}}, R"({"id":)" + std::to_string(++payments) + "}"};
}

// What a server does with each request it has read.
idem::http::Response answer(idem::http::Guard& guard, const idem::http::RequestView& request) {
  auto decision = guard.begin(request);
  if (auto* told = std::get_if<idem::http::Answer>(&decision))
    return told->response;  // a replay, a 409 ...
  auto* proceed = std::get_if<idem::http::Proceed>(&decision);
  if (proceed == nullptr) return pay(request.body);  // no key is needed here, and none was sent
  idem::http::Response response = pay(request.body);
  std::vector<idem::http::HeaderView> headers;
  for (const auto& one : response.headers) headers.push_back({one.name, one.value});
  auto finished =
      guard.finish(std::move(proceed->exchange), {response.status, headers, response.body});
  if (finished.instead) return *finished.instead;  // another attempt had taken over: its response
  for (auto& one : finished.add) response.headers.push_back(std::move(one));
  return response;
}

}  // namespace

int main() {
  auto service = std::make_shared<idem::IdempotencyService>(idem::open("memory:").value());
  idem::http::Guard guard(service);
  const idem::http::HeaderView key{"Idempotency-Key", "7c1e"};
  idem::http::RequestView request;
  request.method = "POST";
  request.target = "/payments";
  request.headers = {&key, 1};
  request.body = R"({"amount":1299})";
  request.tenant = "alice";  // who is authenticated, never what a header says
  request.biz_type = "pay";  // the route
  const auto first = answer(guard, request);
  const auto again = answer(guard, request);
  request.body = R"({"amount":9})";
  const auto other = answer(guard, request);
  std::printf("%u %s, %u %s, %u\n", first.status, first.body.c_str(), again.status,
              again.body.c_str(), other.status);
  return first.status == 201 && again.body == first.body && other.status == 422 && payments == 1
             ? 0
             : 1;
}
