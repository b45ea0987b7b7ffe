// SET key token NX PX lease, without any library of ours: by hiredis, a connection for each client.
#include <hiredis/hiredis.h>

#include "contention/contender.hpp"

namespace idem::bench {
namespace {

struct Disconnect {
  void operator()(redisContext* context) const { redisFree(context); }
};
using Connection = std::unique_ptr<redisContext, Disconnect>;

struct Free {
  void operator()(redisReply* reply) const { freeReplyObject(reply); }
};
using Reply = std::unique_ptr<redisReply, Free>;

Reply tell(redisContext* context, const std::vector<std::string>& words) {
  std::vector<const char*> texts;
  std::vector<std::size_t> sizes;
  for (const std::string& word : words) {
    texts.push_back(word.data());
    sizes.push_back(word.size());
  }
  return Reply(static_cast<redisReply*>(
      redisCommandArgv(context, static_cast<int>(words.size()), texts.data(), sizes.data())));
}

bool is_ok(const Reply& reply) {
  return reply && reply->type == REDIS_REPLY_STATUS && std::string_view(reply->str) == "OK";
}

class SetAsker final : public Asker {
 public:
  explicit SetAsker(Connection connection)
      : connection_(std::move(connection)),
        token_(Owner::random().hex()),
        lease_ms_(std::to_string(kContentionLease.count() / 1000)) {}

  Heard claim(const Request& request) override {
    key_ = "bare:" + request.key.tenant + ":" + request.key.key;
    const Reply reply = set(token_, "NX");
    if (is_ok(reply)) return Heard::won;
    if (reply && reply->type == REDIS_REPLY_NIL) return Heard::running;
    trouble_ = reply ? std::string(reply->str, reply->len) : std::string(connection_->errstr);
    return Heard::failed;
  }

  bool complete(std::string_view result) override { return is_ok(set(std::string(result), "XX")); }

 private:
  Reply set(const std::string& value, const char* condition) {
    ++costs_.trips;
    return tell(connection_.get(), {"SET", key_, value, condition, "PX", lease_ms_});
  }

  const Connection connection_;
  const std::string token_;
  const std::string lease_ms_;
  std::string key_;
};

result<std::unique_ptr<Asker>> enter(StoreUrl url) {
  const bool local = url.scheme() == "redis+unix";
  Connection connection(local ? redisConnectUnix(url.path().c_str())
                              : redisConnect(url.host().c_str(), url.port().value_or(6379)));
  if (!connection || connection->err != 0)
    return fail(errc::unavailable,
                url.redacted() + ": " + (connection ? connection->errstr : "out of memory"));
  std::string database = local ? url.text("db").value_or("") : url.path();
  if (database.starts_with('/')) database.erase(0, 1);
  std::vector<std::vector<std::string>> greetings;
  if (!url.password().empty()) {
    greetings.push_back({"AUTH", url.password()});
    if (!url.user().empty()) greetings.back().insert(greetings.back().begin() + 1, url.user());
  }
  if (!database.empty()) greetings.push_back({"SELECT", database});
  for (const auto& greeting : greetings) {
    if (!is_ok(tell(connection.get(), greeting)))
      return fail(errc::denied, url.redacted() + ": " + greeting.front() + " was refused");
  }
  return std::make_unique<SetAsker>(std::move(connection));
}

}  // namespace

std::vector<Contender> bare_redis(const Place& place, Clock&) {
  const auto url = StoreUrl::parse(place.fixture.url.empty() ? place.name : place.fixture.url);
  if (!url || !url->scheme().starts_with("redis")) return {};
  Contender bare;
  bare.name = place.name + " bare SET NX";
  bare.how = "SET key token NX PX lease, no library, a connection for each client";
  bare.durability = place.fixture.store->capabilities().durability;
  bare.keeps_result = false;
  if (url->scheme() != "redis" && url->scheme() != "redis+unix") {
    bare.skipped = "hiredis as it is used here speaks neither TLS nor to a cluster";
    return {std::move(bare)};
  }
  bare.enter = [url = *url] { return enter(url); };
  return {std::move(bare)};
}

}  // namespace idem::bench
