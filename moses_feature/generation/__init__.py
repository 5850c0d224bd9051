"""What networks write by themselves: samples, and the best targets of a source phrase."""
