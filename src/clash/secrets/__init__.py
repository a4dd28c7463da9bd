"""Keys: where they may be sent, and how they are kept out of what is stored or shown."""
