"""Learn compact binary codes from relative comparisons, by column generation."""
