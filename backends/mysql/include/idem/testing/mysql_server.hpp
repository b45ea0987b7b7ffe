// A private MariaDB server for tests and measurements: its own directory, port and socket.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "idem/testing/server_process.hpp"

namespace idem::testing {

class MysqlServer {
 public:
  // Installs and starts one, in about three seconds; `arguments` are added to the server's own.
  // unavailable: no server is installed here, or it does not start.
  [[nodiscard]] static result<std::unique_ptr<MysqlServer>> start(
      std::vector<std::string> arguments = {});

  // Its administrator is root without a password. `parameters`: "table=t&tls=disable".
  [[nodiscard]] std::string socket_url(std::string_view database,
                                       std::string_view parameters = "") const;
  [[nodiscard]] std::string tcp_url(std::string_view database,
                                    std::string_view parameters = "") const;

  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] std::string socket() const { return directory_ / "socket"; }
  [[nodiscard]] ServerProcess& process() { return *process_; }

 private:
  MysqlServer(TempDirectory directory, std::uint16_t port)
      : directory_(std::move(directory)), port_(port) {}

  TempDirectory directory_;
  std::uint16_t port_;
  std::unique_ptr<ServerProcess> process_;
};

}  // namespace idem::testing
