"""Published numbers reproduced, and the report."""
