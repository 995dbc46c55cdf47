"""Problems: target posteriors split over agents, one module per kind.

A problem module holds ``Params`` (a class of ``options.Options``),
``check(params, agents)``, which refuses an impossible combination before anything runs, and
``build(params, agents, partition, stream, resources)``, which draws the data from
``stream("data")`` or loads them from the folder ``resources`` and returns a
``contracts.Problem``. If it reads downloaded data, ``needs(params)`` names the data sets. Modules
are found by their file name; there is no other list of them.

What a problem may have beyond the protocol: ``gradient_at(chains, width)`` returns
``g(x, agents, out)``, the gradients of ``width`` chosen agents of each chain (x and out have shape
(chains, width, dim), agents (chains, width)), for samplers that move few agents at a time; and
``reference``, the exact posterior where it is not Gaussian, with ``sample(count, rng)`` and
``cdf(axis)`` (see ``concord.laws.quadrature``).
"""
