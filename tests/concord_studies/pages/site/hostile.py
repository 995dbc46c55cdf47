"""What the tests' paper says in every place that takes a text: to be shown, and do nothing."""

SECRET = "what another file of this machine holds"
HOSTILE = """</script><script>top.pwned = 1</script><img src="x" onerror="top.pwned = 1"> -->

.. include:: secret.txt

.. raw:: html
   :file: secret.txt

.. raw:: html

   <script>top.pwned = 1</script>

`a link <javascript:top.pwned=1>`_ <javascript:top.pwned=1> [link](javascript:top.pwned=1)
|w_i - average| x_ *y **z ``code {{ 7 * 7 }} {% raw %} \\ &lt; $ :math:`x` "'
"""
SHOWN = " ".join(HOSTILE.split())
