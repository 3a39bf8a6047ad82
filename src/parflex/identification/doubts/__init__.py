"""What may be wrong with a record: units, signs and zeros that explain its efforts where those given do not."""
