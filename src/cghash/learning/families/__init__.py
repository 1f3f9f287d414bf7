"""Families of hash functions: parameters → bits, and how each is priced."""
