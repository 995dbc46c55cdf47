"""The built-in samplers, one module each with a subclass of ``concord.sampler.Sampler``.

A sampler's kind in a configuration is the name of its module.
"""
