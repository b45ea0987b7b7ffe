// rediss://: the chain and the host name are verified, or nothing is said to the server.
#include <gtest/gtest.h>

#include <cstdlib>

#include "redis_servers.hpp"

namespace idem::testing {
namespace {

class RedisTls : public ::testing::Test {
 protected:
  RedisTls()
      : files_(TempDirectory::make("tls").value()),
        port_(make_certificates()),
        server_({"--tls-port", std::to_string(port_), "--tls-cert-file", files_ / "good.pem",
                 "--tls-key-file", files_ / "key.pem", "--tls-ca-cert-file", files_ / "ca.pem",
                 "--tls-auth-clients", "no"}) {}

  // An authority, a certificate of it for "localhost" alone, and a second authority.
  std::uint16_t make_certificates() {
    const std::string script = "cd " + files_.path() + R"( && exec >/dev/null 2>&1 &&
new="openssl req -x509 -newkey rsa:2048 -nodes -days 2"
$new -keyout ca.key -out ca.pem -subj /CN=authority
$new -keyout other.key -out other.pem -subj /CN=stranger
openssl req -newkey rsa:2048 -nodes -keyout key.pem -out good.csr -subj /CN=server
printf 'subjectAltName=DNS:localhost' > names
openssl x509 -req -in good.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out good.pem)";
    if (std::system(script.c_str()) != 0) throw std::runtime_error("openssl failed");
    return free_port().value();
  }

  [[nodiscard]] std::string url(const std::string& host, const std::string& ca) const {
    return "rediss://" + host + ":" + std::to_string(port_) +
           "/0?connect_timeout=500ms&timeout=500ms" + (ca.empty() ? "" : "&ca=" + (files_ / ca));
  }

  TempDirectory files_;
  std::uint16_t port_;
  RedisServer server_;
};

TEST_F(RedisTls, WorksWithTheRightAuthorityAndNameOnly) {
  const auto store = open_redis(url("localhost", "ca.pem"));
  ASSERT_TRUE(store.has_value()) << store.error().message;
  IdempotencyService service(*store);
  auto outcome = service.claim(request("k"));
  ASSERT_TRUE(outcome.has_value()) << outcome.error().message;
  EXPECT_TRUE(std::holds_alternative<Claimed>(*outcome));

  const auto code = [](const std::string& text) {
    const auto opened = open_redis(text);
    return opened ? errc{} : opened.error().code;
  };
  EXPECT_EQ(code(url("127.0.0.1", "ca.pem")), errc::unavailable);     // a name it was not made for
  EXPECT_EQ(code(url("localhost", "other.pem")), errc::unavailable);  // an authority not trusted
  EXPECT_EQ(code(url("localhost", "")), errc::unavailable);           // nor by the system
  EXPECT_EQ(code(url("localhost", "missing.pem")), errc::invalid_argument);
}

}  // namespace
}  // namespace idem::testing
