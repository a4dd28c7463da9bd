"""Pages for the person at this machine: a server on the loopback interface, and what they share."""
