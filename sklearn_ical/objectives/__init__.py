"""What is maximized: objectives of batches, without user-facing classes."""
