// A real server for your tests: private, empty, on loopback, its files in a directory of its own;
// gone with the object, or with the process that made it, however that ends.
//
//   const auto redis = idem::testing::ServerFixture::redis().value();
//   const auto store = idem::open(redis->url()).value();
//   redis->process().kill();    // what does your code do now?
//   redis->process().start();   // the same port, the same files
//
// Link idem::server_fixture.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "idem/testing/server_process.hpp"

namespace idem::testing {

// Thread safe.
class ServerFixture {
 public:
  // Started in well under a second. Keeps nothing on disk unless the arguments, which are added to
  // the server's own, say so: {"--appendonly", "yes"}.
  // Both: unavailable if the program is not installed here or does not start; the error names the
  // package, or holds the end of the server's log.
  [[nodiscard]] static result<std::unique_ptr<ServerFixture>> redis(
      std::vector<std::string> arguments = {});
  // Installed and started in about three seconds, with an empty database `idem`, and root without a
  // password.
  [[nodiscard]] static result<std::unique_ptr<ServerFixture>> mariadb(
      std::vector<std::string> arguments = {});

  // For idem::open(): an empty store at first. `query`: "timeout=100ms".
  [[nodiscard]] std::string url(std::string_view query = "") const;
  // The same over TCP or over the unix socket, in a database of your choice.
  [[nodiscard]] std::string tcp_url(std::string_view database, std::string_view query = "") const;
  [[nodiscard]] std::string socket_url(std::string_view database,
                                       std::string_view query = "") const;

  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] std::string socket() const { return directory_ / "socket"; }
  [[nodiscard]] const std::string& directory() const { return directory_.path(); }
  [[nodiscard]] ServerProcess& process() const { return *process_; }

 private:
  enum class Kind { redis, mariadb };
  ServerFixture(Kind kind, TempDirectory directory, std::uint16_t port)
      : kind_(kind), directory_(std::move(directory)), port_(port) {}
  // In a new directory, on a free port, not started.
  [[nodiscard]] static result<std::unique_ptr<ServerFixture>> prepare(Kind kind);
  [[nodiscard]] result<void> launch(ServerCommand command, std::vector<std::string> arguments);

  Kind kind_;
  TempDirectory directory_;
  std::uint16_t port_;
  std::unique_ptr<ServerProcess> process_;
};

}  // namespace idem::testing
