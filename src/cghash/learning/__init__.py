"""The method: triplets, losses, hash functions, column generation."""
