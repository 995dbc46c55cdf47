"""Problems from models of PyMC and NumPyro, and from joint densities."""
