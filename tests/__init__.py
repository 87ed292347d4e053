"""The tests; psrt imports gRPC before any of them does, as encrypted ports need it."""

from psrt.rpc import grpc_library as _grpc_library  # noqa: F401
