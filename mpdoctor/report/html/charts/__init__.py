"""Charts as inline SVG: each a function from the report's numbers to `Chart`, whose text alternative says what it shows."""
