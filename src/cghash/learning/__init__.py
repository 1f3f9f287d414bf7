"""The method: triplets, master problem, pricing, and the loop that joins them."""
