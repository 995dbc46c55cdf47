"""What commands do beyond calling one function; each takes the options of its command line."""
