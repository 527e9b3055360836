"""What a test is told when it cannot have its server."""


class ServerMissing(Exception):
    """No server could be found or started; the message is a sentence for whoever runs the tests."""
