"""The method: column generation, its master and pricing problems, losses and triplets."""
