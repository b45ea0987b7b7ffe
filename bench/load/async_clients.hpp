// Clients that block no thread: one thread runs them all, each a coroutine over AsyncService.
#pragma once

#include <memory>
#include <span>

#include "load/client.hpp"

namespace idem::bench {

// As Client::work of every one of them, from now on. The one thread's processor time is entered
// with the first client. The lanes of a server's store are the service's own: not counted.
void work_asynchronously(const RoundTask& task, const IdempotencyService& service,
                         std::span<const std::unique_ptr<Client>> clients,
                         const std::atomic<bool>& stop);

}  // namespace idem::bench
