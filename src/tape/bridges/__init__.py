from tape.wire import fork_guard as fork_guard  # before any module here imports gRPC
