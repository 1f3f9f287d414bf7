"""The method: triplets, master problem, pricing problem, families of hash functions."""
