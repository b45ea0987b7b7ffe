// Boost.Asio's compiled part, with TLS: the one place where it is compiled.
#include <boost/asio/impl/src.hpp>
#include <boost/asio/ssl/impl/src.hpp>
