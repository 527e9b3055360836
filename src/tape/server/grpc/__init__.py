from tape.wire import forking as forking  # before any module here imports gRPC
