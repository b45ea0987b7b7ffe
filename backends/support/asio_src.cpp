// Boost.Asio's compiled half, once for all backends that talk to a server.
#include <boost/asio/impl/src.hpp>
#include <boost/asio/ssl/impl/src.hpp>
