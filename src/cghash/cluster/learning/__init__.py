"""How a fit runs on many workers: each holds partitions of the items and triplets, and answers with sums over them."""
