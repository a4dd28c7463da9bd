"""Keys: where they may go, and how they stay out of everything that is stored or shown."""
