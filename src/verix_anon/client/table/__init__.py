"""The owner's table: the roles of its columns, their encoding, and its digest."""
