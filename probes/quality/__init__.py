"""Small task suites that tell whether the answers of a chat endpoint are still right."""
