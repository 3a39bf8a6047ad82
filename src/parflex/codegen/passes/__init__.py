"""From traced expressions to straight-line instructions: passes that save operators, then lowering."""
