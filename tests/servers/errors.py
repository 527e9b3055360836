"""The error of a test whose server cannot be started."""


class ServerMissing(Exception):
    """No server could be found or started; the message is a sentence for whoever runs the tests."""
