"""Text tables into Moses' binary formats, and asked back."""
