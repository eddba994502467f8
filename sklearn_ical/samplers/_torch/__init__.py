"""What the samplers know of torch: nets, their dropout, and ensembles of them; loaded on use."""
