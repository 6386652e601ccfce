"""Measurements of batches: kills, throughput and memory."""
