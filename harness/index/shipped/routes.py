"""Routes of a small server."""

HANDLERS = {}


def route(pattern):
    """Registers a handler for the paths that fit a pattern."""
    def register(handler):
        HANDLERS[pattern] = handler
        return handler
    return register


def dispatch(path):
    """Calls the handler whose pattern fits the path of a request."""
    for pattern, handler in HANDLERS.items():
        if path.startswith(pattern):
            return handler(path)
    raise LookupError(path)


def escaped(text):
    """Replaces characters that have a meaning in HTML by entities."""
    entities = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
    return "".join(entities.get(character, character) for character in text)
