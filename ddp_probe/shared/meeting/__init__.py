"""Lets the hosts of one launch meet over plain sockets: doctor compares them, gather collects what they have."""
