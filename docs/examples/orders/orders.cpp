#include "orders.hpp"

#include <nlohmann/json.hpp>

namespace orders {
namespace {

using Json = nlohmann::json;
using namespace std::chrono_literals;

idem::ServiceOptions options() {
  idem::ServiceOptions options;
  // Nobody ever sees this lease: the record is visible to others only once it has its result. Long,
  // so that no heartbeat touches the connection while a request works on it.
  options.policy.lease = 1h;
  options.policy.stuck_after = 1h;
  return options;
}

Reply problem(int status, const char* why) { return {status, Json{{"error", why}}.dump()}; }

// The only moves of an order's state; there is none back.
std::string_view state_before(std::string_view event) {
  if (event == "PAID") return "WAIT_PAY";
  if (event == "REFUNDED") return "PAID";
  return "";
}

struct Notice {
  std::string trade_no;
  std::int64_t seq = 0;
  std::string event;
};

// What became of a notice that was seen for the first time.
Json apply(Session& session, const Notice& notice) {
  const auto seen =
      session.sequences.accept(notice.trade_no, static_cast<std::uint64_t>(notice.seq)).value();
  if (!std::holds_alternative<idem::Applied>(seen)) {
    return {{"result", "success"}, {"applied", false}, {"why", "late"}};
  }
  const std::string_view from = state_before(notice.event);
  const Value values[] = {notice.event, notice.trade_no, from};
  const auto changed = session.database->execute(
      "UPDATE orders SET state = ? WHERE trade_no = ? AND state = ?", values);
  if (changed == 1) return {{"result", "success"}, {"applied", true}};
  return {{"result", "success"}, {"applied", false}, {"why", "not from this state"}};
}

}  // namespace

Session::Session(const std::string& url)
    : database(connect(url)),
      service(std::make_shared<idem::IdempotencyService>(database->store(), options())),
      guard(service, {}, idem::http::StoreErrors::thrown),
      sequences(database->store()) {}

void Sessions::transact(const std::function<bool(Session&)>& unit) {
  std::unique_ptr<Session> session;
  {
    const std::lock_guard guard(mutex_);
    if (!idle_.empty()) {
      session = std::move(idle_.back());
      idle_.pop_back();
    }
  }
  if (!session) session = std::make_unique<Session>(url_);
  session->database->transact([&] { return unit(*session); });
  const std::lock_guard guard(mutex_);
  idle_.push_back(std::move(session));
}

Reply create_order(Database& database, const std::string& trade_no, const std::string& body) {
  const Json order = Json::parse(body, nullptr, false);
  if (!order.is_object() || !order.contains("item") || !order["item"].is_string()) {
    return problem(400, "an order is {\"item\": ..., \"count\": ...}");
  }
  const auto item = order["item"].get<std::string>();
  const std::int64_t count = order.value("count", std::int64_t{1});
  if (count < 1) return problem(400, "count must be at least 1");
  const Value taken[] = {count, item, count};
  if (database.execute("UPDATE stock SET num = num - ? WHERE item = ? AND num >= ?", taken) != 1) {
    return problem(409, "sold out");
  }
  const Value row[] = {trade_no, item, count};
  database.execute("INSERT INTO orders (trade_no, item, count, state) VALUES (?, ?, ?, 'WAIT_PAY')",
                   row);
  const Value wanted[] = {item};
  const auto left = database.text("SELECT num FROM stock WHERE item = ?", wanted).value_or("0");
  return {201,
          Json{{"trade_no", trade_no}, {"state", "WAIT_PAY"}, {"left", std::stoll(left)}}.dump()};
}

Reply take_notice(Session& session, const std::string& body) {
  const Json json = Json::parse(body, nullptr, false);
  if (!json.is_object()) return problem(400, "a notice is a JSON object");
  const Notice notice{json.value("trade_no", ""), json.value("seq", std::int64_t{0}),
                      json.value("event", "")};
  if (notice.trade_no.empty() || notice.seq < 1 || state_before(notice.event).empty()) {
    return problem(400, "a notice has trade_no, seq from 1, and event PAID or REFUNDED");
  }
  const std::string key = idem::KeyBuilder("NOTIFY").add(notice.trade_no).add(notice.seq).key();
  const idem::Request request{idem::Key("", "notify", key),
                              idem::Fingerprint::of_bytes(notice.event)};
  auto claimed = session.service->claim(request).value();
  if (const auto* before = std::get_if<idem::Replay>(&claimed)) return {200, before->result};
  auto* won = std::get_if<idem::Claimed>(&claimed);
  if (won == nullptr) return problem(422, "this number was another event");
  const std::string answer = apply(session, notice).dump();
  (void)session.service->complete(won->lease, answer).value();
  return {200, answer};
}

}  // namespace orders
