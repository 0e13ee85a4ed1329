"""Tables, submissions and deliveries on disk or behind a URL; hostile input ends here."""
