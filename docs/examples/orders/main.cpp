// The order service over HTTP:  orders PORT [DATABASE]
//
// DATABASE: sqlite:FILE or mysql://USER:PASSWORD@HOST:PORT/DATABASE; default: the variable
// ORDERS_DB, else sqlite:orders.db. PORT 0: a free one, printed.
#include <cstdlib>
#include <iostream>

#include "idem/http_httplib.hpp"
#include "orders.hpp"

namespace {

using httplib::Request;
using httplib::Response;

void answer(Response& response, const orders::Reply& reply) {
  response.status = reply.status;
  response.set_content(reply.body, "application/json");
}

void unavailable(Response& response, const char* why) {
  std::cerr << "orders: " << why << "\n";
  response = Response();
  response.set_header("Retry-After", "1");
  answer(response, {503, R"({"error":"try again"})"});
}

// Claim, handler and result in one transaction. What the sender has not been told is not so: an
// answer that could not be committed is never sent.
httplib::Server::Handler create(orders::Sessions& sessions) {
  return [&sessions](const Request& request, Response& response) {
    try {
      sessions.transact([&](orders::Session& session) {
        response = Response();  // a transaction may be run again
        const auto guarded = idem::http::guarded(
            session.guard, idem::http::Scope{.biz_type = "order"},
            [&](const Request& asked, Response& made) {
              const auto field = asked.get_header_value("Idempotency-Key");
              const auto key = std::get<std::string>(idem::http::parse_key(field, false));
              answer(made, create_order(*session.database, key, asked.body));
            });
        guarded(request, response);
        return response.status < 500;
      });
    } catch (const std::exception& error) {
      unavailable(response, error.what());
    }
  };
}

httplib::Server::Handler notify(orders::Sessions& sessions) {
  return [&sessions](const Request& request, Response& response) {
    try {
      sessions.transact([&](orders::Session& session) {
        answer(response, take_notice(session, request.body));
        return true;
      });
    } catch (const std::exception& error) {
      unavailable(response, error.what());
    }
  };
}

}  // namespace

int main(int argc, char** argv) {
  const char* variable = std::getenv("ORDERS_DB");
  std::string url = variable != nullptr ? variable : "sqlite:orders.db";
  if (argc > 2) url = argv[2];
  try {
    orders::make_tables(url);
    orders::Sessions sessions(url);
    httplib::Server server;
    server.Post("/orders", create(sessions));
    server.Post("/payments/notify", notify(sessions));
    int port = argc > 1 ? std::atoi(argv[1]) : 0;
    if (port == 0) {
      port = server.bind_to_any_port("127.0.0.1");
    } else if (!server.bind_to_port("127.0.0.1", port)) {
      throw std::runtime_error("port " + std::to_string(port) + " is taken");
    }
    std::cout << "listening on 127.0.0.1:" << port << std::endl;
    return server.listen_after_bind() ? 0 : 1;
  } catch (const std::exception& error) {
    std::cerr << "orders: " << error.what() << "\n";
    return 1;
  }
}
