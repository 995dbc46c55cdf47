"""Problems: target posteriors split over agents, one module per kind.

Modules are found by their file name; there is no other list of them. What a module has says
``contracts.ProblemKind`` (and, for data that are downloaded, ``NeedsData`` and ``TakesData``); what
its problem has, ``contracts.Problem``, and what more a problem may offer, the protocols after it.
"""
