"""Addresses that answer requests: what runs there, and one service that always can."""
