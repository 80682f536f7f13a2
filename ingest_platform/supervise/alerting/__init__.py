"""Pure decisions about alerts: what is wrong, and what is raised or resolved because of it."""
