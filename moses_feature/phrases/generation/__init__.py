"""What networks write by themselves: samples, beam search."""
